"""Run a script in a Python process of its own: a process has one Spark, and tests must not fight over it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PRELUDE = """
import json as _json

def report(**values):
    with open({result!r}, "w") as file:
        _json.dump(values, file)

"""
SCRIPT_SECONDS = 240


def run_script(
    text: str, environment: Mapping[str, str | None] | None = None, *, quiet: bool = True, **names: Any
) -> dict[str, Any]:
    """What the script gave to `report(...)`; it must end well and, if `quiet`, print nothing at all."""
    with tempfile.TemporaryDirectory() as directory:
        result = Path(directory, "result.json")
        script = Path(directory, "script.py")
        given = "".join(f"{name} = {value!r}\n" for name, value in names.items())
        script.write_text(PRELUDE.format(result=str(result)) + given + text)
        variables: dict[str, str | None] = {**os.environ, **(environment or {})}
        process = subprocess.run(
            [sys.executable, str(script)],
            env={key: value for key, value in variables.items() if value is not None},
            capture_output=True,
            text=True,
            timeout=SCRIPT_SECONDS,
            check=False,
        )
        said = f"stdout:\n{process.stdout}\nstderr:\n{process.stderr}"
        assert process.returncode == 0, said
        assert not quiet or (process.stdout, process.stderr) == ("", ""), said
        return json.loads(result.read_text()) if result.exists() else {}
