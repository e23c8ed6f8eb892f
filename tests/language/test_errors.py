# ruff: noqa: E501 - the cases are tables, one to a line
"""Every mistake gets one error that says what was expected, what was found, where it starts, and what to do."""

from __future__ import annotations

import pytest

from tests.language.corpus import declared
from windrow import errors
from windrow.language import nodes
from windrow.language.binder import bind
from windrow.language.catalog import relation_from_node, stream_from_node
from windrow.language.parse import MAX_TEXT, parse_one

S, B = errors.SyntaxError, errors.BindError

# text, class, column of the marked token in line 1 (0: no place), fragment of the message. The mark « is not part of the text.
ONE_LINE = [
    # names
    ("SELECT src FROM «pakets", B, "unknown stream or relation pakets; did you mean packets?"),
    ("SELECT src FROM «zzz", B, "known are: packets, ticks, hosts, prices"),
    ("SELECT «lenght FROM packets", B, "unknown column lenght; did you mean length?"),
    ("SELECT src, «p.nope FROM packets [NOW] AS p", B, "p has no column nope; there are ts, seq"),
    ("SELECT «x.src FROM packets", B, "there is no x in FROM; there is packets"),
    ("SELECT «floo(length) FROM packets", B, "there is no function floo; did you mean floor?"),
    ("SELECT «src FROM packets, hosts", B, "src is ambiguous; write packets.src or hosts.src"),
    ("SELECT 1 FROM packets, «packets", B, "packets stands twice in FROM; give one of them another alias"),
    ("SELECT src AS a, dst AS «A FROM packets", B, "two output columns are named A; rename one of them"),
    ("SELECT src AS «_time FROM packets", B, "the output name _time is reserved"),
    ("SELECT src FROM «a.packets", B, "a.packets is not the name of a stream or relation"),
    ("SELECT src FROM «read_csv('x')", B, "is not the name of a stream or relation"),
    ("SELECT src FROM packets JOIN hosts USING («nope)", B, "USING (nope): both sides must have that column"),
    ("SELECT «z.* FROM packets", B, "there is no z in FROM"),
    # types
    ("SELECT «src + 1 FROM packets", B, "+ needs a number, but"),
    ("SELECT 1 + «TRUE FROM packets", B, "+ needs a number, but TRUE is BOOLEAN"),
    ("SELECT src FROM packets WHERE «src", B, "WHERE needs a condition, but packets.src is VARCHAR"),
    ("SELECT src FROM packets WHERE length = «'a'", B, "cannot mix INTEGER and VARCHAR ('a'); use CAST"),
    ("SELECT src FROM packets WHERE ts > «'2020-13-45'", B, "is no TIMESTAMP; write it as 'YYYY-MM-DD"),
    ("SELECT src FROM packets WHERE «length IN (SELECT src FROM hosts)", B, "IN compares INTEGER with VARCHAR"),
    ("SELECT src FROM packets WHERE «src IN (SELECT src, owner FROM hosts)", B, "the subquery must have one column, but has 2"),
    ("SELECT «CAST(src AS FOO) FROM packets", B, "type FOO is not supported; use BOOLEAN"),
    ("SELECT CAST(src AS DECIMAL(«x, 2)) FROM packets", S, "Expected a whole number as the size of the type; found 'x'"),
    ("SELECT «99999999999999999999 FROM packets", B, "does not fit in a BIGINT"),
    ("SELECT src FROM packets «UNION ALL SELECT length FROM packets", B, "column src is VARCHAR on the left and INTEGER on the right"),
    ("SELECT src, dst FROM packets «EXCEPT SELECT src FROM hosts", B, "EXCEPT needs the same number of columns on both sides: 2 and 1"),
    # aggregates
    ("SELECT «SUM(src) FROM packets", B, "SUM needs a number, but packets.src is VARCHAR"),
    ("SELECT SUM(«AVG(length)) FROM packets", B, "SUM of an aggregate is not defined; aggregate the subquery's output instead"),
    ("SELECT «src, SUM(length) FROM packets", B, "packets.src is neither aggregated nor in GROUP BY"),
    ("SELECT src FROM packets WHERE «SUM(length) > 1", B, "WHERE cannot contain an aggregate; use HAVING or a subquery"),
    ("SELECT 1 FROM packets GROUP BY «COUNT(*)", B, "GROUP BY cannot contain an aggregate"),
    ("SELECT «COUNT(src, dst) FROM packets", B, "COUNT takes 1 argument, found 2"),
    ("SELECT MIN(length, «2) FROM packets", B, "MIN takes 1 argument; use TOP_K for several values"),
    ("SELECT «QUANTILE(length, 1.5) FROM packets", B, "QUANTILE needs a fraction between 0 and 1, found 1.5"),
    ("SELECT «TOP_K(src, 0) FROM packets", B, "TOP_K needs a whole number k from 1 to 1,000,000, found 0"),
    ("SELECT «PERCENTILE_CONT(0.5) FROM packets", B, "write PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)"),
    ("SELECT «SUM(*) FROM packets", B, "SUM(*) is not defined; only COUNT(*) is"),
    ("SELECT «SUM(length) OVER (PARTITION BY src) FROM packets", B, "OVER is not part of the language; put the window behind the stream"),
    ("SELECT src FROM packets GROUP BY «3", B, "GROUP BY 3: the select list has 1 columns"),
    ("SELECT src FROM packets ORDER BY «0", B, "ORDER BY 0: the select list has 1 columns"),
    # windows
    ("SELECT src FROM packets [RANGE «10]", B, "10 has no time unit, but the time column is a TIMESTAMP; write for instance 10 SECONDS"),
    ("SELECT k FROM ticks [RANGE «10 SECONDS]", B, "10 SECONDS has a time unit, but the time column counts BIGINT ticks; write 10"),
    ("SELECT src FROM packets [RANGE 1 MIN SLIDE «0 SEC]", B, "SLIDE must be positive, found 0 SEC"),
    ("SELECT src FROM packets [RANGE 1 MIN SLIDE «-1 SEC]", B, "SLIDE must be positive, found -1 SEC"),
    ("SELECT src FROM packets [RANGE «0 SEC]", B, "RANGE must be positive, found 0 SEC"),
    ("SELECT src FROM packets [RANGE 1 MIN OFFSET «-1 SEC]", B, "OFFSET must be zero or more, found -1 SEC"),
    ("SELECT src FROM packets [RANGE «1 FORTNIGHT]", B, "unknown time unit FORTNIGHT; use MICROSECOND"),
    ("SELECT src FROM packets [RANGE «0.0000001 SEC]", B, "is not a whole number of microseconds"),
    ("SELECT src FROM packets [RANGE «99999999999 DAYS]", B, "is too long"),
    ("SELECT src FROM packets [RANGE «1e999999999 DAYS]", B, "is out of range"),
    ("SELECT src FROM packets [ROWS «0]", B, "ROWS must be a whole number of tuples of at least 1, found 0"),
    ("SELECT src FROM packets [ROWS «1.5]", B, "ROWS must be a whole number of tuples of at least 1, found 1.5"),
    ("SELECT src FROM packets [ROWS 5] «INTERNAL", S, "Expected INTERNAL inside the brackets of the window; for an alias, write AS INTERNAL"),
    ("SELECT src FROM packets [RANGE 1 MIN] «slide 5 SEC", S, "Expected SLIDE inside the brackets of the window"),
    ("SELECT src FROM packets [RANGE 1 MIN] «OFFSET WHERE ok", S, "Expected OFFSET inside the brackets of the window"),
    ("SELECT src FROM packets [NOW] «RANGE", S, "Expected RANGE inside the brackets of the window"),
    ("SELECT 1 FROM (ISTREAM(SELECT src FROM packets [NOW])) [ROWS 5] «ROWS", S, "Expected ROWS inside the brackets of the window"),
    ("SELECT src FROM packets [ROWS 5 «MIN]", S, "Expected SLIDE, OFFSET, INTERNAL or ] in the window; found 'MIN'"),
    ("SELECT src FROM packets [ROWS«]", S, "Expected a number of tuples; found ']'"),
    ("SELECT src FROM packets [RANGE«]", S, "Expected a duration such as 10 MIN, or a number of ticks; found ']'"),
    ("SELECT src FROM packets [RANGE 10 «'MIN']", S, "Expected SLIDE, OFFSET, INTERNAL or ] in the window"),
    ("SELECT src FROM packets [«FOO 1]", S, "Expected a window: RANGE, WINDOW, ROWS, PARTITION BY … ROWS or NOW; found 'FOO'"),
    ("SELECT src FROM packets p [«1]", S, "Expected a window: RANGE"),
    ("SELECT src FROM packets [RANGE 1 MIN«", S, "Expected SLIDE, OFFSET, INTERNAL or ] in the window, but the statement ends here"),
    ("SELECT src FROM packets [RANGE 1 S SLIDE 1 S «SLIDE 1 S]", S, "SLIDE is given twice in one window"),
    ("SELECT src FROM packets [PARTITION BY «p.src ROWS 3] p", B, "PARTITION BY takes the stream's own columns; write src"),
    ("SELECT src FROM «packets [NOW] x(a)", B, "column aliases in FROM are not part of the language"),
    ("SELECT src FROM «(SELECT src FROM packets) x(a)", B, "column aliases in FROM are not part of the language"),
    ("SELECT «APPROX_QUANTILE(length, 0.5, 0.9) FROM packets", B, "APPROX_QUANTILE takes 2 arguments, found 3"),
    ("SELECT «TOP_K(src, 1e999) FROM packets", B, "TOP_K needs a whole number k from 1 to 1,000,000, found 1e999"),
    ("SELECT src FROM packets [PARTITION BY «nope ROWS 3]", B, "PARTITION BY: there is no column nope; there are ts"),
    ("SELECT src FROM packets [PARTITION BY src «RANGE 3 MIN]", S, "Expected ROWS <count> behind the columns of PARTITION BY"),
    ("SELECT src FROM «hosts [RANGE 1 MIN]", B, "hosts is a relation and has no window; only streams have"),
    ("«SELECT src FROM hosts", B, "the query reads no stream"),
    ("SELECT 1 FROM packets [RANGE 1 S SLIDE 1 S] p, «packets [RANGE 1 S SLIDE 2 S] q", B, "all windows of one query slide alike"),
    ("SELECT 1 FROM packets [NOW], ticks [NOW]", B, "packets has TIMESTAMP time and ticks has BIGINT ticks; they do not mix"),
    ("SELECT src FROM «(SELECT src FROM packets [RANGE 1 MIN]) [ROWS 3] x", B, "add INTERNAL to its windows, or use ISTREAM"),
    # stream operators
    ("SELECT «Rstream(src), dst FROM packets", S, "RSTREAM must hold the whole select list"),
    ("SELECT Rstream(src) AS «x FROM packets", S, "RSTREAM takes no alias; name its columns inside: RSTREAM(x AS name, …)"),
    ("«WSTREAM(SELECT src FROM packets)", B, "WSTREAM needs a window on its output"),
    ("«RSTREAM(SELECT src FROM packets) [ROWS 3]", B, "RSTREAM has no window of its own; only WSTREAM has"),
    ("«ISTREAM_RESTORE(SELECT src FROM packets [RANGE 1 S])", B, "ISTREAM_RESTORE needs a periodic query: give its windows a SLIDE"),
    ("RSTREAM(«src)", S, "Expected a query inside RSTREAM(…); found 'src'"),
    ("DSTREAM(«ISTREAM(SELECT 1 FROM packets))", S, "Expected a query inside DSTREAM(…); found 'ISTREAM'"),
    ("«FOOSTREAM(SELECT src FROM packets)", S, "Expected SELECT …, RSTREAM(SELECT …) or another stream operator"),
    # what sqlglot would let pass
    ("SELECT src,«, dst FROM packets", S, "Expected another element behind the comma; found ','"),
    ("SELECT src, «FROM packets", S, "Expected another element behind the comma; found 'FROM'"),
    ("SELECT src FROM packets,«", S, "Expected a stream, a relation or a subquery, but the statement ends here"),
    ("SELECT src FROM packets junk «trailing", S, "or the statement's end; found 'trailing'"),
    ("SELECT src b «c FROM packets", S, "found 'c'"),
    ("SELECT src FROM packets WHERE«", S, "Expected a condition behind WHERE, but the statement ends here"),
    ("SELECT src FROM packets WHERE «GROUP BY src", S, "Expected a condition behind WHERE; found 'GROUP BY'"),
    ("SELECT src FROM packets GROUP BY«", S, "Expected the columns or expressions to group by"),
    ("SELECT src FROM packets GROUP BY «ALL", S, "Expected the columns or expressions to group by; found 'ALL'"),
    ("SELECT src FROM packets GROUP BY «DISTINCT src", S, "Expected the columns or expressions to group by"),
    ("SELECT src FROM packets GROUP BY «ROLLUP (src)", S, "ROLLUP is not part of the language here; use UNION ALL"),
    ("SELECT src FROM packets GROUP BY src WITH «ROLLUP", S, "ROLLUP is not part of the language here"),
    ("SELECT src FROM packets ORDER BY «ALL", S, "Expected the columns or expressions to order by"),
    ("SELECT src FROM packets LIMIT «ALL", S, "LIMIT takes a whole number; found 'ALL'"),
    ("SELECT src FROM packets LIMIT 10«%", S, "LIMIT takes a whole number; found '%'"),
    ("SELECT src FROM packets LIMIT «'x'", S, "LIMIT takes a whole number"),
    ("SELECT src FROM packets LIMIT 1«+1", S, "LIMIT takes a whole number; found '+'"),
    ("SELECT src FROM packets LIMIT 1 OFFSET 1 «* 2", S, "OFFSET takes a whole number; found '*'"),
    ("SELECT src FROM packets LIMIT «-1", S, "LIMIT takes a whole number"),
    ("SELECT src FROM packets LIMIT 1 OFFSET «x", S, "OFFSET takes a whole number; found 'x'"),
    ("SELECT src FROM packets LIMIT «99999999999999999999", B, "it must fit in a BIGINT"),
    ("SELECT src FROM packets «FETCH FIRST 5 ROWS ONLY", S, "FETCH is not part of the language here; use LIMIT"),
    ("SELECT src FROM packets «FOR UPDATE", S, "FOR is not part of the language here"),
    ("SELECT src FROM packets «TABLESAMPLE (10)", S, "TABLESAMPLE is not part of the language here; use WHERE"),
    ("SELECT src FROM packets «USING SAMPLE 10", S, "found 'USING'"),
    ("SELECT src FROM packets «PIVOT (SUM(length) FOR src IN ('a'))", S, "PIVOT is not part of the language here"),
    ("SELECT src FROM packets «QUALIFY TRUE", S, "QUALIFY is not part of the language here"),
    ("SELECT src FROM packets «WINDOW w AS (PARTITION BY src)", S, "WINDOW is not part of the language here; put the window in brackets"),
    ("SELECT src FROM packets «MINUS SELECT src FROM hosts", S, "MINUS is not part of the language here; use EXCEPT"),
    ("SELECT src «INTO x FROM packets", S, "INTO is not part of the language here"),
    ("«WITH x AS (SELECT 1) SELECT * FROM x", S, "WITH is not part of the language here; write the subquery in FROM"),
    ("SELECT * FROM («VALUES (1)) AS t(a)", S, "VALUES is not part of the language here"),
    ("SELECT * FROM packets, «LATERAL (SELECT 1)", S, "LATERAL is not part of the language here"),
    ("SELECT * FROM packets «NATURAL JOIN hosts", S, "NATURAL JOIN is not part of the language; use JOIN"),
    ("SELECT * FROM packets «ASOF JOIN hosts USING (src)", S, "ASOF JOIN is not part of the language"),
    ("SELECT * FROM packets «SEMI JOIN hosts USING (src)", B, "SEMI JOIN is not part of the language; use EXISTS or NOT EXISTS"),
    ("SELECT * FROM packets «JOIN hosts", S, "JOIN needs ON condition or USING (columns)"),
    ("SELECT * FROM packets «CROSS JOIN hosts ON TRUE", S, "CROSS JOIN takes no ON or USING; use JOIN"),
    ("SELECT src FROM packets «UNION BY NAME SELECT src FROM hosts", B, "BY NAME is not part of the language in UNION"),
    ("SELECT DISTINCT ON («src) src FROM packets", B, "DISTINCT ON is not part of the language; use GROUP BY"),
    ("SELECT «* EXCLUDE (src) FROM packets", B, "EXCLUDE, REPLACE and RENAME behind * are not part of the language"),
    ("SELECT «COLUMNS(*) FROM packets", B, "there is no function columns"),
    ("SELECT src«[1] FROM packets", S, "Lists, structs and their elements are not part of the language; found '['"),
    ("SELECT «[1, 2] FROM packets", S, "Lists, structs and their elements are not part of the language"),
    ("SELECT «{'a': 1} FROM packets", S, "Lists, structs and their elements are not part of the language"),
    ("SELECT «(src, dst) FROM packets", B, "cannot be used in a scalar expression"),
    ("SELECT src «-> 'a' FROM packets", S, "found '->'"),
    ("SELECT list_filter(src, x «-> x > 1) FROM packets", S, "found '->'"),
    ("SELECT src FROM packets GROUP BY src «WHERE ok", S, "Expected the clauses in this order: WHERE, GROUP BY, HAVING, ORDER BY, LIMIT"),
    ("SELECT src FROM packets LIMIT 1 «ORDER BY src", S, "Expected the clauses in this order"),
    ("SELECT «? FROM packets", S, "Parameters are not part of the language; write the value itself; found '?'"),
    ("SELECT «$1 FROM packets", S, "Parameters are not part of the language"),
    ("SELECT «:name FROM packets", S, "Parameters are not part of the language"),
    ("SELECT src FROM packets WHERE length IN («)", S, "Expected values or a query: IN (1, 2), IN (SELECT …)"),
    ("SELECT src FROM packets WHERE length IN «hosts", S, "Expected values or a query"),
    ("SELECT length BETWEEN «SYMMETRIC 1 AND 2 FROM packets", S, "Expected BETWEEN low AND high; found 'SYMMETRIC'"),
    ("SELECT SUM(length) IGNORE «NULLS FROM packets", S, "found 'NULLS'"),
    ("SELECT «0x1F FROM packets", S, "0x1F is not a number"),
    ("SELECT «1a FROM packets", S, "1a is not a number"),
    ("SELECT («", S, "Expected an expression behind (, but the statement ends here"),
    ("SELECT src FROM packets «|> WHERE ok", S, "|> is not part of the language"),
    ("SELECT «'abc FROM packets", S, "the string that starts here has no closing '"),
    ('SELECT «"abc FROM packets', S, 'the quoted name that starts here has no closing "'),
    ("SELECT src «/* FROM packets", S, "the comment that starts here has no closing */"),
    ("SELECT src FROM «packets AS x(a, b)", B, "column aliases in FROM are not part of the language; rename in the select list"),
    # statements
    ("«INSERT INTO s VALUES (1)", S, "INSERT is not part of the language here; push rows into a stream"),
    ("CREATE «TABLE t (a INT)", S, "TABLE is not part of the language here; use STREAM or RELATION"),
    ("CREATE «OR REPLACE STREAM s (t BIGINT) TIME t", S, "Expected CREATE STREAM, CREATE RELATION or CREATE QUERY"),
    ("DROP«", S, "Expected DROP STREAM, DROP RELATION or DROP QUERY, but the statement ends here"),
    ("DROP STREAM«", S, "Expected the name of a stream, but the statement ends here"),
    ("DROP STREAM a«, b", S, "Expected the end of the statement; found ','"),
    ("SHOW «TABLES", S, "Expected SHOW STREAMS, SHOW RELATIONS, SHOW QUERIES or SHOW SHARING; found 'TABLES'"),
    ("EXPLAIN«", S, "Expected a query: SELECT …"),
    ("EXPLAIN «XML SELECT 1 FROM packets", S, "Expected EXPLAIN [TEXT | JSON | MERMAID] and a query, or the name of a registered one; found 'XML'"),
    ("EXPLAIN «ANALYZE q", S, "Expected EXPLAIN [TEXT | JSON | MERMAID]"),
    ("EXPLAIN JSON «CREATE QUERY q AS SELECT 1", S, "Expected EXPLAIN [TEXT | JSON | MERMAID]"),
    ("CREATE QUERY q «SELECT 1", S, "Expected AS and the query behind CREATE QUERY <name>; found 'SELECT'"),
    ("CREATE QUERY «AS SELECT 1", S, "Expected the name of a query; found 'AS'"),
    ("CREATE STREAM s «TIME t", S, "Expected the columns of the stream: (name TYPE, …); found 'TIME'"),
    ("CREATE STREAM s (a INT)«", S, "Expected TIME <column> behind the column list: a stream needs a time column"),
    ("CREATE STREAM s (t BIGINT, «a) TIME t", S, "Expected a column as: name TYPE; found 'a'"),
    ("CREATE STREAM s («t BIGINT NOT NULL) TIME t", S, "Constraints of a column are not part of the language"),
    ("CREATE STREAM s (t BIGINT) TIME t «TIME t", S, "TIME is given twice"),
    ("CREATE STREAM s (t BIGINT) TIME «x", B, "stream s has no column x to be its time column; it has t"),
    ("CREATE STREAM s (t DATE) TIME «t", B, "must be TIMESTAMP or BIGINT, but is DATE"),
    ("CREATE STREAM s (t BIGINT, «T INT) TIME t", B, "s has two columns named T"),
    ("CREATE STREAM s (t BIGINT, «_time INT) TIME t", B, "the column name _time is reserved for answers; choose another"),
    ("CREATE STREAM s (t BIGINT, «x FOO) TIME t", B, "column x: type FOO is not supported"),
    ("CREATE STREAM s (t BIGINT, «x INT[]) TIME t", B, "s: the column x is INT[]; lists, structs and intervals cannot be declared"),
    ("CREATE STREAM s (t BIGINT, «x STRUCT(a INT)) TIME t", B, "lists, structs and intervals cannot be declared"),
    ("CREATE RELATION r (a INT, «x INTERVAL)", B, "r: the column x is INTERVAL; lists, structs and intervals cannot be declared"),
    ('CREATE STREAM s (t BIGINT, «" " INT) TIME t', B, "s: a column needs a name that is not blank, found ' '"),
    ('SELECT src AS «"" FROM packets', B, "an output column needs a name that is not blank, found ''"),
    ("CREATE STREAM s (t TIMESTAMP) TIME t LATENESS «5", B, "LATENESS: 5 has no time unit"),
    ("CREATE STREAM s (t BIGINT) TIME t LATENESS «-5", B, "LATENESS of stream s must not be negative"),
    ("CREATE STREAM s (t BIGINT) TIME t OPTIONS (path«)", S, "Expected the option's value: OPTIONS (key 'value', …)"),
    ("CREATE STREAM s (t BIGINT) TIME t OPTIONS (a 'x', «a 'y')", B, "the option a is given twice"),
    ("CREATE RELATION r (a INT) KEY («b)", B, "relation r has no column b to be its key"),
    ("CREATE RELATION r (a INT) KEY (a, «a)", B, "KEY names the column a twice"),
    ("CREATE RELATION r (a INT) «NON", S, "Expected KEY, NON RETROACTIVE, USING or OPTIONS; found 'NON'"),
]  # fmt: skip


def run(text: str) -> None:
    statement = parse_one(text)
    if isinstance(statement, nodes.CreateStream):
        stream_from_node(statement)
    elif isinstance(statement, nodes.CreateRelation):
        relation_from_node(statement)
    else:
        bind(text, declared())


@pytest.mark.parametrize(("marked", "kind", "fragment"), ONE_LINE)
def test_errors(marked: str, kind: type[errors.LanguageError], fragment: str) -> None:
    text = marked.replace("«", "")
    with pytest.raises(errors.LanguageError) as caught:
        run(text)
    error = caught.value
    assert type(error) is kind
    assert fragment in str(error)
    assert "sqlglot" not in str(error)
    if "«" in marked:
        assert (error.line, error.column) == (1, marked.index("«") + 1), str(error)


@pytest.mark.parametrize(
    ("marked", "fragment"),
    [
        ("SELECT src\n  FROM «pakets", "unknown stream"),
        ("SELECT src,\n\n\t«nope\nFROM packets", "unknown column nope"),
        ("SELECT 'a\nb', «nope FROM packets", "unknown column nope"),
        ("SELECT src FROM packets WHERE length =\n    «'a\nb'", "cannot mix"),
        ("SELECT src -- a comment\nFROM packets\nWHERE «src", "WHERE needs a condition"),
        ("SELECT src /* over\ntwo lines */ FROM packets [RANGE\r\n  «10]", "no time unit"),
        ("SELECT src\nFROM packets\nGROUP BY src\n«WHERE ok;", "clauses in this order"),
        ("SELECT größe,\n «ünknown FROM (SELECT src AS größe FROM packets) AS x", "unknown column ünknown"),
        ("SELECT src\nFROM packets\nLIMIT\n«", "Expected"),
        ("SELECT '😀' || «nope\nFROM packets", "unknown column nope"),
    ],
)
def test_places_in_texts_of_many_lines(marked: str, fragment: str) -> None:
    at = marked.index("«")
    if marked.endswith("\n«"):  # the end of a text is where its last word ends
        at = len(marked[:at].rstrip())
    before = marked.replace("«", "")[:at]
    with pytest.raises(errors.LanguageError, match=fragment) as caught:
        run(marked.replace("«", ""))
    place = (caught.value.line, caught.value.column)
    assert place == (before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1), str(caught.value)


def test_one_statement_at_a_time() -> None:
    with pytest.raises(S, match="expected one statement, found 2"):
        parse_one("SHOW STREAMS; SHOW QUERIES")
    with pytest.raises(S, match="expected one statement, found 0"):
        parse_one(" -- nothing ")


def test_a_text_has_an_end() -> None:
    with pytest.raises(S, match="the text has 1,000,001 characters; at most 1,000,000 are taken at once"):
        parse_one(" " * (MAX_TEXT + 1))
    with pytest.raises(S, match="at most 200,000 are taken at once"):
        parse_one("SELECT " + "1," * 200_000 + "1 FROM packets")
    with pytest.raises(S, match="the name or number has 1,000 characters"):
        parse_one("SELECT " + "x" * 1000 + " FROM packets")


SHAPES = {
    "parentheses": lambda n: "(" * n + "length" + ")" * n,
    "functions": lambda n: "abs(" * n + "length" + ")" * n,
    "case": lambda n: "CASE WHEN ok THEN " * n + "1" + " END" * n,
    "sums": lambda n: "length" + " + 1" * n,
    "minus": lambda n: "- " * n + "length",
    "casts": lambda n: "length" + "::BIGINT" * n,
    "or": lambda n: "ok" + " OR ok" * n,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_nesting_is_taken_up_to_a_limit_and_refused_beyond(shape: str) -> None:
    text = f"SELECT {SHAPES[shape](95)} AS x FROM packets"
    query = bind(text, declared())
    assert parse_one(parse_one(text).sql("cql")).sql("cql") == parse_one(text).sql("cql")
    assert query.ast.sql("cql")
    with pytest.raises(errors.Error, match="nested too deeply"):
        bind(f"SELECT {SHAPES[shape](5000)} AS x FROM packets", declared())
