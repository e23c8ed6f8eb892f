"""EXPLAIN says what happens: patterns, panes, synopses, sharing; in three formats."""

from __future__ import annotations

import json

import pytest

import windrow


@pytest.fixture
def db() -> windrow.Database:
    result = windrow.connect()
    result.execute("CREATE STREAM s (ts TIMESTAMP, k STRING, v INT, x DOUBLE) TIME ts")
    result.execute("CREATE STREAM u (ts TIMESTAMP, k STRING) TIME ts")
    return result


def test_text(db: windrow.Database) -> None:
    db.query("SELECT k, COUNT(*) FROM s [RANGE 6 MIN SLIDE 90 SECONDS] GROUP BY k", name="other")
    query = db.query("SELECT k, SUM(v) AS total, MAX(v) FROM s [RANGE 10 MIN SLIDE 1 MIN] GROUP BY k", name="mine")
    text = query.explain()
    assert "γ group  SUM(v), MAX(v) by k" in text
    assert "window  s [RANGE 10 min SLIDE 1 min]" in text
    assert "panes: panes of 30 s" in text  # the common divisor of what both queries need
    assert "SUM(v): running synopsis" in text
    assert "MAX(v): interval synopsis; max does not subtract; a window of 20 panes, 0.5 lookups per pane" in text
    assert "shared: 2 queries use these panes (rule SS1): other, mine" in text


def test_floating_sums_are_not_subtracted(db: windrow.Database) -> None:
    query = db.query("SELECT SUM(x) FROM s [RANGE 10 MIN SLIDE 1 MIN]")
    assert "SUM(x): interval synopsis; sum_floats does not subtract" in query.explain()


def test_panes_are_never_absurdly_fine(db: windrow.Database) -> None:
    query = db.query("SELECT SUM(v) FROM s [RANGE 10.000001 SECONDS SLIDE 1 SECOND]")
    assert "edges of 2 progressions" in query.explain()


def test_json(db: windrow.Database) -> None:
    text = db.execute("EXPLAIN JSON SELECT s.k FROM s [RANGE 1 MIN], u [RANGE 1 MIN] WHERE s.k = u.k")
    tree = json.loads(text)
    join = tree["plan"]["inputs"][0]["inputs"][0]
    assert (join["operator"], join["pattern"]) == ("⋈ inner join", "WK")
    assert [edge["pattern"] for edge in join["inputs"]] == ["WKS", "WKS"]
    assert [note["topic"] for note in tree["notes"]] == ["strategy", "⋈ join"]


def test_mermaid(db: windrow.Database) -> None:
    db.query("SELECT k, SUM(v) FROM s [RANGE 1 MIN SLIDE 1 MIN] WHERE k = 'a\"<b>' GROUP BY k", name="q")
    text = db.execute("EXPLAIN MERMAID q")
    assert text.startswith("graph BT")
    assert "-->|WKS|" in text and "-->|STR|" in text
    assert '"<' not in text.replace('["', "").replace('"]', "")  # quotes and brackets are escaped


def test_unknown_format(db: windrow.Database) -> None:
    query = db.query("SELECT SUM(v) FROM s [RANGE 1 MIN SLIDE 1 MIN]")
    with pytest.raises(windrow.Error, match="text, json, mermaid"):
        query.explain("xml")


def test_holistic_aggregates_say_how_they_slide(db: windrow.Database) -> None:
    text = db.query("SELECT MEDIAN(v), COUNT(DISTINCT k), MODE(k) FROM s [RANGE 10 MIN SLIDE 1 MIN]").explain()
    assert "MEDIAN(v): frequencies synopsis; no fixed number of words is enough" in text
    assert "few long ones are answered from sorted runs over base intervals" in text
    assert "few long ones are answered from runs sorted by where a value came last" in text
    assert "the values in a window are ranked for each answer" in text
