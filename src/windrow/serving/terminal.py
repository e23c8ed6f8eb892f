"""Words on the terminal besides the progress: results on the standard output, errors and remarks on the other one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow.display import error_console
from windrow.serving.faults import Fault, excerpt

if TYPE_CHECKING:
    from rich.console import Console


def output_console() -> Console:
    """The standard output; colours only on a terminal, and not with NO_COLOR."""
    from rich.console import Console

    return Console(highlight=False, soft_wrap=True)


def tell_faults(faults: list[Fault], text: str = "") -> None:
    """Errors on the standard error, each with its line of the script; `error:` is red on a terminal."""
    from rich.text import Text

    console = error_console()
    for fault in faults:
        console.print(Text.assemble(("error:", "red"), f" {fault.place}{fault.message}"))
        for line in excerpt(text, fault.line, fault.column):
            console.print(Text(line, tab_size=8))


def note(message: str) -> None:
    """A remark on the standard error."""
    error_console().print(message, markup=False)
