"""What the language tests share: the declared streams and relations, and the statements of roundtrip.cql."""

from __future__ import annotations

from pathlib import Path

from windrow.language import nodes
from windrow.language.catalog import Catalog, relation_from_node, stream_from_node
from windrow.language.parse import parse

DECLARATIONS = """
CREATE STREAM packets (
  ts TIMESTAMP, seq BIGINT, src VARCHAR, dst VARCHAR, length INTEGER, price DECIMAL(10, 2), ok BOOLEAN, day DATE
) TIME ts SEQUENCE seq LATENESS 2 SECONDS;
CREATE STREAM ticks (t BIGINT, k INTEGER, v DOUBLE, name VARCHAR) TIME t;
CREATE RELATION hosts (src VARCHAR, owner VARCHAR, weight DOUBLE) KEY (src);
CREATE RELATION prices (k INTEGER, price DOUBLE) NON RETROACTIVE;
"""


def declared() -> Catalog:
    """Two streams (TIMESTAMP time and BIGINT ticks) and two relations (retroactive and not)."""
    catalog = Catalog()
    for statement in parse(DECLARATIONS):
        create = stream_from_node if isinstance(statement, nodes.CreateStream) else relation_from_node
        catalog.add(create(statement))
    return catalog


def _statements() -> list[str]:
    text = (Path(__file__).parent / "fixtures" / "roundtrip.cql").read_text(encoding="utf-8")
    blocks = (
        "\n".join(line for line in block.splitlines() if not line.startswith("--")) for block in text.split("\n\n")
    )
    return [block.strip() for block in blocks if block.strip()]


STATEMENTS = _statements()
QUERIES = [text for text in STATEMENTS if not text.startswith(("CREATE", "DROP", "SHOW", "EXPLAIN"))]
