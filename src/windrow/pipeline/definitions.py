"""What a checkpoint remembers of queries, as JSON: enough to register them again, and to see changes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os.path import abspath
from typing import Any

from windrow.errors import Error
from windrow.language.parse import parse_one
from windrow.pipeline.sinks import SinkSpec
from windrow.state.choice import Strategy


@dataclass(frozen=True)
class QueryDefinition:
    """A registered query: its text, where its answers go (None: they stay with its handle), how it is maintained."""

    name: str
    text: str
    sink: SinkSpec | None = None
    strategy: Strategy = "upa"

    @property
    def meaning(self) -> str:
        """The text without its layout: definitions with the same meaning are the same query, with the same state."""
        try:
            text = parse_one(self.text).sql("cql")
        except Error:
            text = self.text
        return text if self.strategy == "upa" else f"{text} ({self.strategy})"

    def to_json(self) -> dict[str, Any]:
        """For the checkpoint: without options that may be secrets, which `with_secrets` brings back."""
        sink = _without_secrets(self.sink)
        return {"name": self.name, "text": self.text, "sink": sink, "strategy": self.strategy}

    def writes_like(self, other: QueryDefinition) -> bool:
        """Whether the answers go to the same place, however its path is written."""
        return _place(self.sink) == _place(other.sink)

    def with_secrets(self, current: QueryDefinition | None) -> QueryDefinition:
        """The same query with the options that today's script has for the same sink."""
        return self if current is None or not self.writes_like(current) else replace(self, sink=current.sink)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> QueryDefinition:
        """From the checkpoint."""
        sink = record["sink"]
        spec = None if sink is None else SinkSpec.from_json(sink)
        return cls(record["name"], record["text"], spec, record.get("strategy", "upa"))


_SECRET = re.compile(r"pass|secret|token|jaas|credential|(^|[._])key$|private", re.IGNORECASE)


def _without_secrets(sink: SinkSpec | None) -> dict[str, Any] | None:
    if sink is None:
        return None
    return SinkSpec(sink.format, {k: v for k, v in sink.options.items() if not _SECRET.search(k)}).to_json()


def _place(sink: SinkSpec | None) -> dict[str, Any] | None:
    """What tells two sinks apart, seen from here."""
    if sink is None or "://" in sink.options.get("path", "://"):
        return _without_secrets(sink)
    return _without_secrets(SinkSpec(sink.format, {**sink.options, "path": abspath(sink.options["path"])}))
