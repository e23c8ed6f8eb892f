"""The demo's directory: what the demo made in it, so that only that is ever removed."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from windrow.errors import SetupError
from windrow.serving.packets import SEED

FORMAT = 1
"""Counts the changes of the simulated stream: an older one is written anew."""


@dataclass(frozen=True)
class DemoDirectory:
    """Paths below one directory; `demo.json` there says that it belongs to the demo, and what is complete."""

    directory: Path

    @property
    def packets(self) -> Path:
        """The Parquet files of the stream, and nothing else."""
        return self.directory / "packets"

    @property
    def script(self) -> Path:
        """The queries."""
        return self.directory / "demo.cql"

    @property
    def output(self) -> Path:
        """The answers of the last run."""
        return self.directory / "output"

    @property
    def log(self) -> Path:
        """Spark's own messages."""
        return self.directory / "spark.log"

    @property
    def _marker(self) -> Path:
        return self.directory / "demo.json"

    def claim(self) -> None:
        """Make the directory the demo's own; one with other things in it is refused."""
        if self.directory.exists() and not self.directory.is_dir():
            raise SetupError(f"{self.directory} is a file; give --dir a directory")
        if self._marker.exists():
            return
        if self.directory.exists() and any(self.directory.iterdir()):
            raise SetupError(
                f"{self.directory} holds files that are not the demo's; give --dir a new or an empty directory"
            )
        self.directory.mkdir(parents=True, exist_ok=True)
        self._save({})

    def holds_packets(self, rows: int, files: int) -> bool:
        """True when the stream is there, complete."""
        return self._state().get("packets") == _stream(rows, files) and self.packets.is_dir()

    def note_packets(self, rows: int, files: int) -> None:
        """The stream is complete."""
        self._save(self._state() | {"packets": _stream(rows, files)})

    def clear_packets(self) -> None:
        """Remove a stream of another size, or one that was left unfinished."""
        self._save({key: value for key, value in self._state().items() if key != "packets"})
        if self.packets.is_dir():
            for path in [*self.packets.glob("part-*.parquet"), *self.packets.glob(".part-*")]:
                path.unlink()

    def fresh_output(self) -> Path:
        """A place for the answers of this run; those of the last one are removed."""
        if self.output.is_dir():
            shutil.rmtree(self.output)
        return self.output

    def write_script(self, text: str) -> Path | None:
        """Write the script; one that the user has changed is first set aside, under the path that is given back."""
        saved = None
        if self.script.exists() and _digest(self.script.read_text(encoding="utf-8")) != self._state().get("script"):
            paths = (self.directory / f"demo-changed-{number}.cql" for number in count(1))
            saved = self.script.rename(next(path for path in paths if not path.exists()))
        self.script.write_text(text, encoding="utf-8")
        self._save(self._state() | {"script": _digest(text)})
        return saved

    def _state(self) -> dict[str, Any]:
        try:
            state = json.loads(self._marker.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return state if isinstance(state, dict) else {}

    def _save(self, state: dict[str, Any]) -> None:
        hidden = self._marker.with_suffix(".tmp")
        hidden.write_text(json.dumps(state, indent=2) + "\n", encoding="utf-8")
        hidden.replace(self._marker)


def _stream(rows: int, files: int) -> dict[str, int]:
    return {"rows": rows, "files": files, "seed": SEED, "format": FORMAT}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
