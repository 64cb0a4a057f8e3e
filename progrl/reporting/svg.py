"""Charts as SVG for a page: no scripts, colours from the page's own style sheet.

The same numbers give the same bytes. Colours are class names (`c-grpo`), so one chart serves light
and dark pages; each chart has its description as alternative text and its values as tooltips.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from markupsafe import Markup, escape

WIDTH, HEIGHT = 440, 230
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 10, 36
Point = tuple[float, float | None]
Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one name and colour; a point without a value breaks the line."""

    name: str
    colour: str
    points: Sequence[Point]
    mark: Literal["line", "step", "dots"] = "line"

    @property
    def defined(self) -> list[tuple[float, float]]:
        """The points that have a value."""
        return [(x, y) for x, y in self.points if y is not None]


@dataclass(frozen=True, slots=True)
class Range:
    """A value with its interval, in a row of an interval chart."""

    name: str
    colour: str
    mean: float | None
    low: float | None
    high: float | None
    note: str = ""


def element(name: str, *children: str, **attributes: object) -> Markup:
    """An element; `class_` and `stroke_width` become `class` and `stroke-width`."""
    written = "".join(
        f' {key.strip("_").replace("_", "-")}="{escape(_short(value))}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{written}>{''.join(map(escape, children))}</{name}>")


def _short(value: object) -> object:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def show(value: float) -> str:
    """A number in as few digits as tell it apart on a chart."""
    if abs(value) < 1e-12:
        return "0"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def ticks(low: float, high: float, about: int = 4, whole: bool = False) -> list[float]:
    """Round numbers from at most `low` to at least `high`, roughly `about` steps apart.

    Args:
        whole: whole numbers alone.
    """
    if not high > low:
        high = low + (abs(low) or 1.0)
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    steps = [s * p for p in (power, 10 * power) for s in (1, 2, 2.5, 5)] + [1.0]
    fit = [s for s in steps if s >= raw * 0.999 and not (whole and s % 1)]
    step = min(fit, default=1.0)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(i * step, 10) for i in range(first, last + 1)]


def _linear(low: float, high: float, start: float, end: float) -> Scale:
    return lambda value: start + (value - low) / (high - low) * (end - start)


def line_chart(
    title: str,
    x_label: str,
    y_label: str,
    series: Sequence[Series],
    y_range: tuple[float, float] | None = None,
    guides: Sequence[tuple[float, str]] = (),
) -> Markup | None:
    """Series over a common x; None where none of them has a point.

    Args:
        title: said in the alternative text.
        y_range: of the axis; by default from 0 (or the lowest value) to the highest.
        guides: horizontal lines, with a label each.
    """
    drawn = [s for s in series if s.defined]
    if not drawn:
        return None
    xs = [x for s in drawn for x, _ in s.defined]
    ys = [y for s in drawn for _, y in s.defined]
    y_ticks = ticks(*(y_range or (min(0.0, *ys), max(ys))))
    x_low, x_high = min(xs), max(xs)
    if x_low == x_high:
        x_low, x_high = x_low - 1, x_high + 1
    x_ticks = [t for t in ticks(x_low, x_high, 5, whole=True) if x_low <= t <= x_high]
    x = _linear(x_low, x_high, LEFT, WIDTH - RIGHT)
    y = _linear(y_ticks[0], y_ticks[-1], HEIGHT - BOTTOM, TOP)
    parts = [*_grid(x_ticks, y_ticks, x, y), *_labels(x_label, y_label, HEIGHT)]
    for value, label in guides:
        at = y(value)
        parts.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=at, y2=at, class_="guide"))
        parts.append(element("text", label, x=WIDTH - RIGHT, y=at - 3, class_="note end"))
    for s in drawn:
        parts += _marks(s, x, y, x_label)
    said = "; ".join(
        f"{s.name} from {show(s.defined[0][1])} to {show(s.defined[-1][1])}" for s in drawn
    )
    return _chart(f"{title}. Line chart by {x_label}: {said}.", HEIGHT, parts)


def _marks(series: Series, x: Scale, y: Scale, x_label: str) -> list[Markup]:
    parts: list[Markup] = []
    if series.mark != "dots":
        path = _path(series, x, y)
        parts.append(element("path", d=path, class_=f"line {series.colour}"))
    for at, value in series.defined:
        tip = element("title", f"{x_label} {show(at)}, {series.name}: {show(value)}")
        where = {"cx": x(at), "cy": y(value)}
        if series.mark == "dots":
            parts.append(element("circle", tip, **where, r=3.5, class_=f"dot {series.colour}"))
        else:  # unseen, but to be pointed at
            parts.append(
                element(
                    "circle", tip, **where, r=5, fill="none", pointer_events="all",
                    class_=f"touch {series.colour}",
                )
            )  # fmt: skip
    return parts


def _path(series: Series, x: Scale, y: Scale) -> str:
    moves: list[str] = []
    pen = False
    for at, value in series.points:
        if value is None:
            pen = False
            continue
        across, up = f"{x(at):.1f}", f"{y(value):.1f}"
        if not pen:
            moves.append(f"M{across} {up}")
        elif series.mark == "step":
            moves.append(f"H{across}V{up}")
        else:
            moves.append(f"L{across} {up}")
        pen = True
    return "".join(moves)


def _grid(x_ticks: Sequence[float], y_ticks: Sequence[float], x: Scale, y: Scale) -> list[Markup]:
    parts = []
    for value in y_ticks:
        at = y(value)
        parts.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=at, y2=at, class_="grid"))
        parts.append(element("text", show(value), x=LEFT - 6, y=at + 4, class_="tick end"))
    for value in x_ticks:
        base = HEIGHT - BOTTOM + 15
        parts.append(element("text", show(value), x=x(value), y=base, class_="tick middle"))
    return parts


def _labels(x_label: str, y_label: str, height: float) -> list[Markup]:
    middle = (TOP + height - BOTTOM) / 2
    return [
        element(
            "text", x_label, x=(LEFT + WIDTH - RIGHT) / 2, y=height - 5, class_="label middle"
        ),
        element(
            "text", y_label, x=10, y=middle, class_="label middle",
            transform=f"rotate(-90 10 {middle:g})",
        ),
    ]  # fmt: skip


def _chart(description: str, height: float, parts: Sequence[str]) -> Markup:
    return element(
        "svg",
        *parts,
        viewBox=f"0 0 {WIDTH} {height:g}",
        class_="chart",
        role="img",
        aria_label=description,
    )


def interval_chart(
    title: str,
    x_label: str,
    rows: Sequence[tuple[str, Sequence[Range]]],
    marks: Sequence[float] = (0, 0.25, 0.5, 0.75, 1),
    left: float = 60,
) -> Markup | None:
    """Values with their intervals, in named rows; None where no value is defined.

    Args:
        marks: of the axis, from its start to its end; an interval that goes on is cut there.
        left: room for the names of the rows.
    """
    if not any(r.mean is not None for _, ranges in rows for r in ranges):
        return None
    gap, lane = 10, 9
    scale = _linear(marks[0], marks[-1], left, WIDTH - RIGHT)

    def x(value: float) -> float:
        return scale(min(max(value, marks[0]), marks[-1]))

    height = TOP + sum(gap + lane * len(ranges) for _, ranges in rows) + BOTTOM
    parts = []
    for value in marks:
        at, base = x(value), height - BOTTOM
        parts.append(element("line", x1=at, x2=at, y1=TOP, y2=base, class_="grid"))
        parts.append(element("text", show(value), x=at, y=base + 15, class_="tick middle"))
    middle = (left + WIDTH - RIGHT) / 2
    parts.append(element("text", x_label, x=middle, y=height - 5, class_="label middle"))
    top = float(TOP)
    said = []
    for name, ranges in rows:
        centre = top + (gap + lane * len(ranges)) / 2
        parts.append(element("text", name, x=left - 8, y=centre + 4, class_="tick end"))
        for i, r in enumerate(ranges):
            parts += _range(r, name, x, top + gap / 2 + lane * (i + 0.5))
        said.append(
            f"{name}: "
            + ", ".join(f"{r.name} {show(r.mean)}" for r in ranges if r.mean is not None)
        )
        top += gap + lane * len(ranges)
        parts.append(
            element("line", x1=left, x2=WIDTH - RIGHT, y1=top, y2=top, class_="grid faint")
        )
    return _chart(f"{title}. {'; '.join(said)}.", height, parts)


def _range(r: Range, row: str, x: Scale, at: float) -> list[Markup]:
    if r.mean is None:
        return []
    parts = []
    if r.low is not None and r.high is not None:
        parts.append(
            element("line", x1=x(r.low), x2=x(r.high), y1=at, y2=at, class_=f"whisker {r.colour}")
        )
    bounds = "" if r.low is None or r.high is None else f" [{show(r.low)}, {show(r.high)}]"
    tip = element("title", f"{row}, {r.name}: {show(r.mean)}{bounds}{r.note}")
    parts.append(element("circle", tip, cx=x(r.mean), cy=at, r=3.5, class_=f"dot {r.colour}"))
    return parts
