"""LIKE, regular expressions, prefixes and suffixes. Regular expressions are RE2's, in Arrow as in DuckDB."""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from windrow.expressions.arrays import Datum
from windrow.expressions.compiler import Compiler, Rule, Site
from windrow.expressions.program import Kernel, Program
from windrow.expressions.text import TEXT, constant, null

BOOLEAN = pa.bool_()


def _fixed(kernel: Kernel) -> Rule:
    def rule(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
        pattern = constant(site, arguments[1], "pattern")
        if pattern is None:
            return null(compiler, BOOLEAN)
        operand = compiler.coerce(site, arguments[0], TEXT)
        return compiler.emit(
            site, site.view.name, [operand], BOOLEAN, lambda a: kernel(a, pattern=pattern), options=(pattern,)
        )

    return rule


def _like(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    operand = compiler.coerce(site, arguments[0], TEXT)
    pattern = constant(site, arguments[1], "pattern")
    escape = constant(site, arguments[2], "escape character") if len(arguments) > 2 else ""
    if pattern is None or escape is None:
        return null(compiler, BOOLEAN)
    if len(escape) > 1:
        raise site.unsupported("ESCAPE takes one character")
    if site.view.name == "ilike":
        # DuckDB lowers both sides; Arrow's ignore_case folds some letters otherwise.
        operand = compiler.emit(site, "lower", [operand], TEXT, pc.utf8_lower)
        pattern = pc.utf8_lower(pa.scalar(pattern)).as_py()
    kernel = like_kernel(_pieces(site, pattern, escape))
    program = compiler.emit(site, "like", [operand], BOOLEAN, kernel, options=(pattern, escape))
    return compiler.emit(site, "not", [program], BOOLEAN, pc.invert) if site.view.options[0] else program


def _pieces(site: Site, pattern: str, escape: str) -> list[str]:
    """The pattern cut into wildcards ("%", "_") and literal texts, which are marked by a leading "="."""
    pieces: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character in "%_" and character != escape:
            pieces.append(character)
            continue
        if character == escape:
            character = next(characters, "")  # noqa: PLW2901 - the escaped character stands for itself
            if character == "":
                raise site.unsupported("the pattern of LIKE must not end with its escape character")
        if pieces and pieces[-1].startswith("="):
            pieces[-1] += character
        else:
            pieces.append("=" + character)
    return pieces


def like_kernel(pieces: list[str]) -> Kernel:
    """A plain text search where one will do, a regular expression otherwise."""
    shape = "".join("=" if piece.startswith("=") else piece for piece in pieces)
    text = next((piece[1:] for piece in pieces if piece.startswith("=")), "")
    if shape in ("", "="):
        return lambda a: pc.equal(a, text)
    simple: dict[str, Kernel] = {"=%": pc.starts_with, "%=": pc.ends_with, "%=%": pc.match_substring}
    if shape in simple:
        kernel = simple[shape]
        return lambda a: kernel(a, pattern=text)
    special = {"%": ".*", "_": "."}
    body = "".join(special.get(piece) or _quoted(piece[1:]) for piece in pieces)
    expression = rf"(?s)\A{body}\z"
    return lambda a: pc.match_substring_regex(a, pattern=expression)


def _quoted(text: str) -> str:
    return "".join(rf"\{character}" if character in r"\.+*?()|[]{}^$" else character for character in text)


def _regexp(compiler: Compiler, site: Site, arguments: list[Program]) -> Program:
    pattern = constant(site, arguments[1], "pattern")
    flags = constant(site, arguments[2], "options") if len(arguments) > 2 else ""
    if pattern is None or flags is None:
        return null(compiler, BOOLEAN)
    if not set(flags) <= {"i", "c"}:
        raise site.unsupported(f"{site.view.name} knows only the option 'i', not '{flags}'")
    expression = rf"\A(?:{pattern})\z" if site.view.name == "regexp_full_match" else pattern
    if "i" in flags:
        expression = f"(?i){expression}"

    def run(a: Datum) -> Datum:
        return pc.match_substring_regex(a, pattern=expression)

    _check(site, expression)
    operand = compiler.coerce(site, arguments[0], TEXT)
    return compiler.emit(site, "regexp", [operand], BOOLEAN, run, options=(expression,))


def _check(site: Site, expression: str) -> None:
    """A bad pattern is the query's fault: say so before any data comes."""
    try:
        pc.match_substring_regex(pa.scalar("", TEXT), pattern=expression)
    except pa.ArrowInvalid as invalid:
        reason = re.sub(r"\s+", " ", str(invalid))
        raise site.unsupported(f"{site.view.name} cannot use this pattern: {reason}") from None


RULES: dict[str, Rule] = {
    "starts_with": _fixed(pc.starts_with),
    "ends_with": _fixed(pc.ends_with),
    "contains": _fixed(pc.match_substring),
    "like": _like,
    "ilike": _like,
    "regexp_matches": _regexp,
    "regexp_full_match": _regexp,
}
