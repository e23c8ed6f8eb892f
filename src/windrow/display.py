"""What a run shows while it goes on: a live display on a terminal, a line now and then elsewhere, JSON for programs.

All of it goes to the standard error; the standard output is for results.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from windrow.figures import Pace, counts, progress_record
from windrow.progress import Progress

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

PLAIN_SECONDS, RARE_SECONDS = 5.0, 60.0
"""At most one plain line in so many seconds: at first often, then ever less, so that a log of a day stays short."""
JSON_SECONDS = 1.0
"""At most one JSON line in so many seconds, but every new state."""


def error_console() -> Console:
    """The standard error; colours only on a terminal, and not with NO_COLOR."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, soft_wrap=True)


def display_for(*, quiet: bool, as_json: bool) -> Display:
    """The display that fits where the standard error goes."""
    if quiet:
        return Display()
    if as_json:
        return JsonLines()
    if sys.stderr.isatty() and not error_console().is_dumb_terminal:
        return LiveDisplay()
    return PlainLines()


class Display:
    """Shows nothing, which is what --quiet asks for, but keeps the pace for the summary; the others add to it."""

    def __init__(self) -> None:
        self.pace = Pace()
        self.latest = Progress("starting")

    def __call__(self, progress: Progress) -> None:
        self.pace.see(progress)
        self.latest = progress

    def __enter__(self) -> Display:
        return self

    def __exit__(self, *exc: object) -> None:
        self.leave()

    def leave(self) -> None:
        """Give the terminal back; also called when the process is about to end at once."""


class PlainLines(Display):
    """One line at most every few seconds, for logs."""

    def __init__(self, file: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._file = file
        self._clock = clock
        self._pause = PLAIN_SECONDS
        self._next = clock() + self._pause

    def __call__(self, progress: Progress) -> None:
        super().__call__(progress)
        now = self._clock()
        if now >= self._next:
            self._pause = min(RARE_SECONDS, 1.5 * self._pause)
            self._next = now + self._pause
            print(plain_line(progress, self.pace), file=self._file or sys.stderr, flush=True)


class JsonLines(Display):
    """One JSON object per line: `{"progress": {…}}`."""

    def __init__(self, file: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._file = file
        self._clock = clock
        self._next = clock()
        self._state = ""

    def __call__(self, progress: Progress) -> None:
        super().__call__(progress)
        now = self._clock()
        if now >= self._next or progress.state != self._state:
            self._next, self._state = now + JSON_SECONDS, progress.state
            line = json.dumps({"progress": progress_record(progress, self.pace)}, ensure_ascii=False)
            print(line, file=self._file or sys.stderr, flush=True)


class LiveDisplay(Display):
    """Two lines that are redrawn in place: the state with a bar, and the figures."""

    def __init__(self, console: Console | None = None) -> None:
        from rich.live import Live

        super().__init__()
        self._entered = time.monotonic()
        console = console or error_console()
        # Text that is printed meanwhile goes above the display, but never into another stream than it was meant for.
        self._live = Live(
            console=console,
            transient=True,
            refresh_per_second=8,
            redirect_stdout=sys.stdout.isatty(),
            get_renderable=self._render,
        )

    def __enter__(self) -> Display:
        self._live.start()
        return self

    def leave(self) -> None:
        """Take the display away and show the cursor again."""
        self._live.stop()

    def _render(self) -> RenderableType:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.spinner import Spinner
        from rich.table import Table
        from rich.text import Text

        progress = self.latest
        elapsed = f"{time.monotonic() - self._entered:,.0f} s"
        top = Table.grid(padding=(0, 1))
        fraction = progress.fraction
        if fraction is None:
            top.add_row(Spinner("dots"), Text(progress.state, "bold"), Text(elapsed, "dim"))
        else:
            bar = ProgressBar(total=1.0, completed=min(1.0, fraction), width=40)
            top.add_row(Text(progress.state, "bold"), bar, f"{fraction:4.0%}", Text(elapsed, "dim"))
        if not progress.streams:
            return top
        figures = Text(" · ".join(counts(progress, self.pace)), "cyan")
        if progress.late:
            figures.highlight_words([f"{progress.late:,} late"], "yellow")
        return Group(top, figures)


def plain_line(progress: Progress, pace: Pace) -> str:
    """One moment of a run as a line of a log."""
    share = "" if progress.fraction is None else f" {progress.fraction:.0%}"
    if not progress.streams:
        return f"{progress.state}{share}"
    return f"{progress.state}{share}: {', '.join(counts(progress, pace))}"
