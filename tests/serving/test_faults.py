"""The line of the script and its caret, whatever is in the line."""

from __future__ import annotations

import pytest

from windrow.serving.faults import WIDEST, Fault, excerpt


def test_tabs_and_wide_characters_do_not_move_the_caret() -> None:
    shown, caret = excerpt("\tSELECT '名前' FRM s", 1, 14)
    assert shown == "  1 | \tSELECT '名前' FRM s"
    assert caret == "    | \t" + " " * 14 + "^"  # the two characters are two columns each


def test_long_lines_are_cut_around_the_fault() -> None:
    text = "a" * 500 + "!" + "b" * 500
    shown, caret = excerpt(text, 1, 501)
    assert shown[caret.index("^")] == "!"
    assert shown.startswith("  1 | …a") and shown.endswith("b…")
    assert len(shown) <= WIDEST + 8


def test_a_fault_at_the_end_of_the_text_has_a_caret_behind_it() -> None:
    assert excerpt("SHOW", 1, 5) == ["  1 | SHOW", "    |     ^"]


@pytest.mark.parametrize("place", [(None, None), (0, 1), (3, 1)])
def test_no_excerpt_without_a_place(place: tuple[int | None, int | None]) -> None:
    assert excerpt("a\nb", *place) == []


def test_windows_line_ends_are_not_shown() -> None:
    assert excerpt("a\r\nbc\r\n", 2, 2) == ["  2 | bc", "    |  ^"]


def test_the_place_is_as_editors_read_it() -> None:
    assert Fault("BindError", "m", "x.cql", 3, 14).place == "x.cql:3:14: "
    assert Fault("SetupError", "m").place == ""
