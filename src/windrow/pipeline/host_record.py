"""What a snapshot says of a host, as JSON: all that is needed to make the host again and go on with its journal.

The engine's own state is a part of it, in a form that only the engine reads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windrow.errors import CheckpointError
from windrow.language.catalog import Relation, Stream
from windrow.language.records import relation_from_json, relation_to_json, stream_from_json, stream_to_json
from windrow.pipeline.definitions import QueryDefinition

VERSION = 2


@dataclass(frozen=True)
class Intake:
    """Where a stream comes from: what the source was, and the folder of Spark's offsets."""

    fingerprint: str
    folder: str


@dataclass(frozen=True)
class HostRecord:
    """What is declared and registered, how far the streams are read, and the state of the engine."""

    streams: list[Stream]
    relations: list[Relation]
    queries: list[tuple[QueryDefinition, str | None]]
    """In the order in which the engine registered them; with the reason why one was stopped."""
    done: dict[str, int]
    files: dict[str, int]
    intakes: dict[str, Intake]
    finished: bool
    engine: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """For the checkpoint."""
        return {
            "version": VERSION,
            "streams": [stream_to_json(stream) for stream in self.streams],
            "relations": [relation_to_json(relation) for relation in self.relations],
            "queries": [definition.to_json() | {"stopped": stopped} for definition, stopped in self.queries],
            "done": self.done,
            "files": self.files,
            "intakes": {name: [intake.fingerprint, intake.folder] for name, intake in self.intakes.items()},
            "finished": self.finished,
            "engine": self.engine,
        }

    @classmethod
    def from_json(cls, meta: Mapping[str, Any], checkpoint: Path) -> HostRecord:
        """From the checkpoint, where it is for errors to tell; queries have no secrets."""
        if meta.get("version") != VERSION:
            raise CheckpointError(
                f"{checkpoint} was written by another version of Windrow (format {meta.get('version')}, "
                f"this one reads {VERSION}); start afresh with another directory"
            )
        return cls(
            [stream_from_json(record) for record in meta["streams"]],
            [relation_from_json(record) for record in meta["relations"]],
            [(QueryDefinition.from_json(record), record["stopped"]) for record in meta["queries"]],
            dict(meta["done"]),
            dict(meta["files"]),
            {name: Intake(*intake) for name, intake in meta["intakes"].items()},
            meta["finished"],
            meta["engine"],
        )
