"""USING and OPTIONS of a stream or relation, read and checked without Spark.

The formats and options are Spark's own. Three things are stricter than Spark's defaults: a csv, json or xml record that
does not parse is an error, not a row of NULLs; a csv header must name the columns, not just be skipped; and checksums
in Parquet files are verified.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from windrow.errors import SetupError
from windrow.language import types
from windrow.language.catalog import Relation, Stream

OWN_OPTIONS = ("scan", "select")
"""Windrow's own; all others go to Spark unchanged."""
BYTES_PER_TRIGGER = 1 << 30
"""The default pace of file sources. Spark's own default is everything at once, with availableNow too."""

KNOW_THEIR_SCHEMA = frozenset({"parquet", "orc", "avro", "binaryfile"})
PARSED = frozenset({"csv", "json", "xml"})
FILE_FORMATS = KNOW_THEIR_SCHEMA | PARSED | {"text"}
NEVER_END = frozenset({"rate", "rate-micro-batch", "socket"})
"""Sources that have no last row."""
_VERIFY_CHECKSUMS = "parquet.page.verify-checksum.enabled"
_PACE_OPTIONS = frozenset(
    {"scan", "mode", "maxfilespertrigger", "maxbytespertrigger", "maxcachedfiles", "discardcachedinputratio",
     "cleansource", "sourcearchivedir", "ignoremissingfiles", "ignorecorruptfiles", "rowspersecond", "rampuptime",
     "numpartitions", "maxoffsetspertrigger", "minoffsetspertrigger", "maxtriggerdelay", "minpartitions",
     "maxrecordsperpartition", "failondataloss", "fetchoffset.numretries", "fetchoffset.retryintervalms",
     "kafkaconsumer.polltimeoutms"}
)  # fmt: skip


@dataclass(frozen=True)
class Declared:
    """USING and OPTIONS of a stream or relation; the names of options are case-insensitive, as Spark's are."""

    source: Stream | Relation
    format: str
    options: dict[str, str]

    @classmethod
    def of(cls, source: Stream | Relation) -> Declared:
        """Read a declaration; a SetupError says what is wrong with its options."""
        kind = "stream" if isinstance(source, Stream) else "relation"
        if source.format is None:
            own = ", or give it a DataFrame" if kind == "stream" else ""
            raise SetupError(f"{kind} {source.name} has no source; declare it with USING … OPTIONS (…){own}")
        found = cls(source, source.format.lower(), {name.lower(): value for name, value in source.options.items()})
        found.check()
        return found

    @property
    def owner(self) -> str:
        """For messages."""
        return f"{'stream' if isinstance(self.source, Stream) else 'relation'} {self.source.name}"

    @property
    def select(self) -> str | None:
        """The user's projection of the source."""
        return self.options.get("select")

    def check(self) -> None:
        """Refuse what Spark would refuse only when the query runs."""
        way = self.options.get("scan")
        if way not in (None, "arrow", "rows"):
            raise SetupError(f"{self.owner}: the option scan must be 'arrow' or 'rows', found {way!r}")
        if self.format in FILE_FORMATS and not self.options.get("path"):
            raise SetupError(f"{self.owner}: {self.format} needs a path; add OPTIONS (path '…')")
        paces = [name for name in ("maxFilesPerTrigger", "maxBytesPerTrigger") if name.lower() in self.options]
        for name in paces:
            value = self.options[name.lower()]
            if self.format in FILE_FORMATS and not (value.isascii() and value.isdigit() and int(value) > 0):
                raise SetupError(f"{self.owner}: the option {name} must be a whole number above 0, found {value!r}")
        if self.format in FILE_FORMATS and len(paces) > 1:
            raise SetupError(f"{self.owner}: give maxFilesPerTrigger or maxBytesPerTrigger, not both")

    def spark_options(self) -> dict[str, str]:
        """What goes to Spark: all but our own and the path, and a strict reading unless the user wants another."""
        own = (*OWN_OPTIONS, "path") if self.format in FILE_FORMATS else OWN_OPTIONS
        options = {name: value for name, value in self.source.options.items() if name.lower() not in own}
        if self.format in PARSED:
            # Spark's own default makes NULLs of what it cannot parse: rows would be lost in silence.
            defaults = {"mode": "FAILFAST", "timeZone": "UTC"}
            if self.format == "csv" and self.has_header:
                defaults["enforceSchema"] = "false"  # the header is checked, not skipped
            options |= {name: value for name, value in defaults.items() if name.lower() not in self.options}
        if self.format == "parquet" and _VERIFY_CHECKSUMS not in self.options:
            options[_VERIFY_CHECKSUMS] = "true"  # Spark's own default gives what a damaged page has
        return options

    def paced(self) -> dict[str, str]:
        """The options of a streaming reader."""
        options = self.spark_options()
        if self.format in FILE_FORMATS and not {"maxfilespertrigger", "maxbytespertrigger"} & set(self.options):
            options["maxBytesPerTrigger"] = str(BYTES_PER_TRIGGER)
        return options

    @property
    def has_header(self) -> bool:
        """Does a csv file name its columns?"""
        return self.options.get("header", "false").lower() == "true"


def fingerprint(stream: Stream) -> str:
    """12 hex digits of what makes it another stream: not its name, and no option that only sets the pace."""
    options = {name.lower(): value for name, value in stream.options.items()}
    meaning = {
        "columns": [(column.name, types.type_name(column.type)) for column in stream.columns],
        "time": stream.time,
        "sequence": stream.sequence,
        "lateness": stream.lateness,
        "format": stream.format and stream.format.lower(),
        "options": sorted((name, value) for name, value in options.items() if name not in _PACE_OPTIONS),
    }
    return hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()[:12]
