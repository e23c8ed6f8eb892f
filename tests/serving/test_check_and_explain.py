"""`windrow check` and `windrow explain`, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from windrow.serving.cli import app

STREAM = "CREATE STREAM s (t BIGINT, k INT, x INT) TIME t;\n"
GOOD = STREAM + (
    "CREATE QUERY a AS SELECT SUM(x) AS total FROM s [RANGE 5 SLIDE 1];\n"
    "CREATE QUERY b AS SELECT MAX(x) AS most FROM s [RANGE 50 SLIDE 10];\n"
    "CREATE QUERY c AS SELECT k, COUNT(*) AS n FROM s [RANGE 5 SLIDE 1] GROUP BY k;\n"
)
BAD = STREAM + "CREATE QUERY a AS SELECT SUM(y) FROM s [RANGE 5 SLIDE 1];\nCREATE STREAM z (t INT) TIME t;\n"


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.cql").write_text(GOOD)
    (tmp_path / "bad.cql").write_text(BAD)
    return tmp_path


def call(*arguments: str, stdin: str | None = None):  # type: ignore[no-untyped-def]
    return CliRunner().invoke(app, arguments, input=stdin)


def test_a_good_script_is_counted(at: Path) -> None:
    result = call("check", "good.cql")
    assert (result.exit_code, result.stdout, result.stderr) == (
        0, "good.cql: 1 stream, 3 queries in 2 share groups\n", ""
    )  # fmt: skip


def test_errors_are_shown_with_line_and_caret(at: Path) -> None:
    result = call("check", "bad.cql")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "error: bad.cql:2:30: unknown column y; there are t, k, x\n"
        "  2 | CREATE QUERY a AS SELECT SUM(y) FROM s [RANGE 5 SLIDE 1];\n"
        "    |                              ^\n"
        "error: bad.cql:3:30: the time column t of stream z must be TIMESTAMP or BIGINT, but is INTEGER\n"
        "  3 | CREATE STREAM z (t INT) TIME t;\n"
        "    |                              ^\n"
        "bad.cql: 2 errors\n"
    )


def test_queries_on_a_failed_stream_are_told_once(at: Path) -> None:
    queries = "".join(f"CREATE QUERY q{i} AS SELECT SUM(x) FROM s [RANGE 5 SLIDE 1];\n" for i in range(9))
    result = call("check", "-", stdin=STREAM.replace("TIME t", "TIME nope") + queries)
    assert result.stderr.count("error:") == 1
    assert (
        "<stdin>: not checked: 9 statements on s, which is not declared because of the error above: q0, q1, q2, q3 and "
        "5 more\n" in result.stderr
    )


def test_a_second_declaration_is_told_beside_its_own_error(at: Path) -> None:
    bad = "CREATE QUERY a AS SELECT SUM(y) FROM s [RANGE 5 SLIDE 1];\n"
    result = call("check", "-", stdin=STREAM + bad + bad)
    assert "<stdin>:3:30: unknown column y" in result.stderr
    assert "<stdin>:3:1: a is declared already in line 2; give it another name" in result.stderr
    result = call("check", "-", stdin=GOOD + "DROP QUERY a;\n" + bad)
    assert "already" not in result.stderr


def test_what_a_run_may_stumble_over_is_a_warning(at: Path) -> None:
    (at / "here").mkdir()
    script = (
        "CREATE STREAM a (t BIGINT) TIME t USING parquet OPTIONS (path 'gone');\n"
        "CREATE STREAM b (t BIGINT) TIME t USING parquet OPTIONS (path 'here');\n"
        "CREATE STREAM c (t BIGINT) TIME t USING jsn OPTIONS (path 'gone');\n"
        "CREATE STREAM d (t BIGINT) TIME t USING parquet OPTIONS (path 's3://bucket/far');\n"
        "CREATE RELATION r (k INT) KEY (k) USING csv;\n"
        "CREATE QUERY n INTO nonsense AS SELECT COUNT(*) AS n FROM a [RANGE 5 SLIDE 1];\n"
        "CREATE QUERY o INTO orc OPTIONS (path 'o') AS SELECT COUNT(*) AS n FROM a [RANGE 5 SLIDE 1];\n"
    )
    result = call("check", "-", stdin=script)
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "<stdin>: warning: stream a: there is nothing at gone, seen from here; correct the path, or create it",
        "<stdin>: warning: stream c: jsn is a streaming source only if some connector on Spark's class path has that "
        "name; did you mean json?",
        "<stdin>: warning: relation r: csv needs a path; add OPTIONS (path '…')",
        "<stdin>: warning: query n: nonsense is a batch writer only if some connector on Spark's class path has that "
        "name; Windrow and Spark have console, csv, json, memory, noop, orc, parquet, text, xml",
    ]
    assert call("check", "--quiet", "-", stdin=script).stderr == ""


def test_several_scripts_are_checked_apart(at: Path) -> None:
    result = call("check", "good.cql", "missing.cql", "good.cql")
    assert result.exit_code == 2
    assert result.stdout.count("3 queries in 2 share groups") == 2
    assert result.stderr.startswith("error: there is no script missing.cql;")


def test_check_for_machines(at: Path) -> None:
    result = call("check", "--json", "good.cql", "bad.cql")
    record = json.loads(result.stdout)
    assert (result.exit_code, result.stderr, record["good"]) == (2, "", False)
    good, bad = record["scripts"]
    assert good == {
        "file": "good.cql", "good": True, "streams": 1, "relations": 0, "queries": 3, "with_operators": 0,
        "share_groups": 2, "errors": [], "not_checked": {}, "warnings": [],
    }  # fmt: skip
    assert bad["errors"][0] == {
        "type": "BindError", "message": "unknown column y; there are t, k, x", "line": 2, "column": 30
    }  # fmt: skip


def test_quiet_says_nothing_about_a_good_script(at: Path) -> None:
    result = call("check", "-q", "good.cql")
    assert (result.exit_code, result.output) == (0, "")


def test_what_the_engine_cannot_run_is_an_error_at_its_place(at: Path) -> None:
    nested = "CREATE QUERY m AS SELECT k FROM s [RANGE 5] WHERE x > (SELECT MAX(x) FROM s [RANGE 5]);"
    result = call("check", "-", stdin=STREAM + nested)
    assert result.exit_code == 2
    assert "error: <stdin>:2:55: a subquery can stand in FROM, or in WHERE as [NOT] EXISTS or [NOT] IN" in result.stderr


def test_continuous_queries_are_counted_apart_and_relations_are_not_read(at: Path) -> None:
    script = STREAM + (
        "CREATE RELATION r (k INT, v INT) KEY (k) USING csv OPTIONS (path 'nowhere.csv', header true);\n"
        "CREATE QUERY joined AS SELECT s.x, r.v FROM s [RANGE 5], r WHERE s.k = r.k;\n"
    )
    result = call("check", "-", stdin=script)
    assert (result.exit_code, result.stdout) == (
        0,
        "<stdin>: 1 stream, 1 relation, 1 query with operators of its own\n",
    )
    assert "relation r: there is nothing at nowhere.csv" in result.stderr
    more = "CREATE QUERY seen AS SELECT DISTINCT k FROM s [RANGE 5];\n"
    result = call("check", "-", stdin=GOOD + more + script[len(STREAM) :])
    counted = "1 stream, 1 relation, 5 queries: 3 in 2 share groups, 2 with operators of their own"
    assert result.stdout == f"<stdin>: {counted}\n"
    plan = call("explain", "-", "joined", stdin=script).stdout
    assert "⋈R join  s.k = r.k" in plan and "strategy: upa" in plan


def test_explain_of_one_query_is_its_plan(at: Path) -> None:
    result = call("explain", "good.cql", "B")
    assert result.exit_code == 0
    assert result.stdout.startswith("output  every 10")
    assert "shared: 2 queries use these panes (rule SS1): a, b" in result.stdout


def test_explain_of_all_names_each(at: Path) -> None:
    text = call("explain", "good.cql").stdout
    assert [line for line in text.splitlines() if line.startswith("──")] == ["── a ──", "── b ──", "── c ──"]
    assert set(json.loads(call("explain", "good.cql", "--format", "json").stdout)) == {"a", "b", "c"}
    assert call("explain", "good.cql", "a", "--format", "mermaid").stdout.startswith("graph BT")


def test_explain_of_an_unknown_query_suggests(at: Path) -> None:
    result = call("explain", "good.cql", "bb")
    assert (result.exit_code, result.stderr) == (2, "error: the script has no query bb; did you mean b?\n")


def test_explain_of_a_bad_script_tells_its_errors(at: Path) -> None:
    result = call("explain", "bad.cql")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("error:") == 2
