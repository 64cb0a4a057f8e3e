"""What reaches the terminal: results on standard output, logs and progress on standard error."""

import contextlib
import json
import logging
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from rich.console import Console
from rich.highlighter import NullHighlighter
from rich.logging import RichHandler
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table

from progrl.stages.base import Progress

WIDE = 160
"""Columns where there is no terminal."""
FIRST_LINE = 2.0
"""Seconds before a plain progress line; what is quicker shows none."""
BETWEEN_LINES = 5.0
"""Least seconds between plain progress lines."""


@cache
def printer() -> Console:
    """Standard output for people; wide where it is no terminal, so that little is folded."""
    narrow = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, markup=False, emoji=False, width=None if narrow else WIDE)


@cache
def side() -> Console:
    """Standard error: logs and progress bars, which share it without tearing each other."""
    return Console(stderr=True, highlight=False, emoji=False)


def grid(rows: Sequence[Mapping[str, str]], by: str) -> Table:
    """Rows with the same keys as a table, a rule before each new value of the key `by`."""
    table = Table(*(rows[0] if rows else ()), box=None, header_style="bold", pad_edge=False)
    before = None
    for row in rows:
        if before not in (None, row[by]):
            table.add_section()
        before = row[by]
        table.add_row(*row.values())
    return table


def emit(value: Any) -> None:
    """`value` as JSON on standard output; what is no finite number becomes null."""
    sys.stdout.write(json.dumps(_finite(value), indent=2, ensure_ascii=False) + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


_handlers: list[logging.Handler] = []


def start_logging(verbose: bool = False, quiet: bool = False) -> None:
    """Send logs to standard error: progrl's from INFO, others' from WARNING."""
    if side().is_terminal:
        handler: logging.Handler = RichHandler(
            console=side(), show_path=False, markup=False, highlighter=NullHighlighter()
        )
        handler.setFormatter(logging.Formatter("%(message)s"))
    else:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    for old in _handlers:
        root.removeHandler(old)
    _handlers[:] = [handler]
    root.addHandler(handler)
    root.setLevel(logging.INFO if verbose else logging.WARNING)
    own = logging.DEBUG if verbose else logging.WARNING if quiet else logging.INFO
    logging.getLogger("progrl").setLevel(own)


class PlainProgress:
    """A line every few seconds, for logs and pipes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._start = time.monotonic()
        self._next = self._start + FIRST_LINE

    def __call__(self, done: int, total: int, text: str = "") -> None:
        """Tell of `done` of `total` units, if it is time to."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + BETWEEN_LINES
        share = f" ({100 * done // total}%)" if total else ""
        seconds = now - self._start
        line = f"{self._name}: {done}/{total}{share} after {seconds:.0f} s {text}".rstrip()
        side().print(line, markup=False, soft_wrap=True)


class BarProgress:
    """A bar that lives at the foot of a terminal."""

    def __init__(self, name: str, bars: Bars) -> None:
        self._bars = bars
        self._task = bars.add_task(name, total=None, text="")

    def __call__(self, done: int, total: int, text: str = "") -> None:
        """Move the bar to `done` of `total` units."""
        self._bars.update(self._task, completed=done, total=total, text=text)


def _silent(done: int, total: int, text: str = "") -> None:
    pass


@contextlib.contextmanager
def progress(name: str, quiet: bool = False) -> Iterator[Progress]:
    """Something to call with `(done, total, text)`: a bar, plain lines, or nothing."""
    if quiet:
        yield _silent
    elif not side().is_terminal or os.environ.get("TERM") == "dumb":
        yield PlainProgress(name)
    else:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[text]}", markup=False),
        )
        with Bars(*columns, console=side(), transient=True) as bars:
            yield BarProgress(name, bars)
