"""More charts as SVG: bars, radar, heat map, shares, steps of a sum, dots of runs.

They follow the rules of `svg`: no scripts, colours by class, the same bytes for the same numbers,
None where no value is defined, all values as tooltips and in the alternative text.
"""

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from progrl.reporting.svg import Range, element, show, ticks

WIDE, HEIGHT = 720, 260
Values = Sequence[float | None]


def frame(description: str, height: float, parts: Sequence[str], width: float = WIDE) -> Markup:
    """The parts as one picture."""
    return element(
        "svg", *parts, viewBox=f"0 0 {width:g} {height:g}", class_="chart", role="img",
        aria_label=description,
    )  # fmt: skip


def bar_chart(
    title: str, y_label: str, groups: Sequence[tuple[str, Sequence[Range]]]
) -> Markup | None:
    """Bars in [0, 1] with whiskers, side by side in named groups."""
    if not any(bar.mean is not None for _, bars in groups for bar in bars):
        return None
    left, top, base = 46.0, 10.0, HEIGHT - 34.0
    parts = _levels((0, 0.25, 0.5, 0.75, 1), left, top, base)
    parts.append(
        element(
            "text", y_label, x=10, y=(top + base) / 2, class_="label middle",
            transform=f"rotate(-90 10 {(top + base) / 2:g})",
        )
    )  # fmt: skip
    room = (WIDE - left - 8) / len(groups)
    said = []
    for number, (name, bars) in enumerate(groups):
        start = left + room * number
        middle = start + room / 2
        parts.append(element("text", name, x=middle, y=base + 18, class_="tick middle"))
        width = min(34.0, room * 0.8 / max(1, len(bars)))
        for i, bar in enumerate(bars):
            at = middle + width * (i - len(bars) / 2)
            parts += _bar(bar, name, at, width, top, base)
        said.append(f"{name}: {_list(bars)}")
    return frame(f"{title}. {'; '.join(said)}.", HEIGHT, parts)


def _levels(values: Sequence[float], left: float, top: float, base: float) -> list[Markup]:
    parts = []
    for value in values:
        y = base - value * (base - top)
        parts.append(element("line", x1=left, x2=WIDE - 8, y1=y, y2=y, class_="grid"))
        parts.append(element("text", show(value), x=left - 6, y=y + 4, class_="tick end"))
    return parts


def _list(bars: Sequence[Range]) -> str:
    return ", ".join(f"{b.name} {show(b.mean)}" for b in bars if b.mean is not None)


def _bar(bar: Range, group: str, at: float, width: float, top: float, base: float) -> list[Markup]:
    if bar.mean is None:
        return []
    scale = base - top
    bounds = "" if bar.low is None or bar.high is None else f" [{show(bar.low)}, {show(bar.high)}]"
    tip = element("title", f"{group}, {bar.name}: {show(bar.mean)}{bounds}{bar.note}")
    height = max(1.0, min(1.0, bar.mean) * scale)
    parts = [
        element(
            "rect", tip, x=at + 1, y=base - height, width=width - 2, height=height, rx=2,
            class_=f"fill {bar.colour}",
        )
    ]  # fmt: skip
    if bar.low is not None and bar.high is not None:
        low, high = (base - max(0.0, min(1.0, v)) * scale for v in (bar.low, bar.high))
        x = at + width / 2
        parts.append(element("line", x1=x, x2=x, y1=low, y2=high, class_="error"))
    return parts


def radar_chart(
    title: str, axes: Sequence[str], series: Sequence[tuple[str, str, Sequence[float]]]
) -> Markup | None:
    """Values in [0, 1] on axes around a centre, a polygon a series of (name, colour, values).

    None with fewer than three axes: there is no area to see.
    """
    if len(axes) < 3 or not series:
        return None
    width, height, radius = 440.0, 300.0, 104.0
    x, y = width / 2, height / 2

    def place(axis: int, value: float) -> tuple[float, float]:
        angle = 2 * math.pi * axis / len(axes) - math.pi / 2
        return x + radius * value * math.cos(angle), y + radius * value * math.sin(angle)

    def outline(values: Sequence[float]) -> str:
        return " ".join(f"{a:.1f},{b:.1f}" for a, b in map(place, range(len(axes)), values))

    parts = [
        element("polygon", points=outline([ring] * len(axes)), class_="ring")
        for ring in (0.25, 0.5, 0.75, 1.0)
    ]
    for i, axis in enumerate(axes):
        end, label = place(i, 1.0), place(i, 1.14)
        parts.append(element("line", x1=x, y1=y, x2=end[0], y2=end[1], class_="grid"))
        side = "middle" if abs(label[0] - x) < 12 else "end" if label[0] < x else "start"
        parts.append(element("text", axis, x=label[0], y=label[1] + 4, class_=f"tick {side}"))
    for name, colour, values in series:
        parts.append(element("polygon", points=outline(values), class_=f"area {colour}"))
        for i, value in enumerate(values):
            at = place(i, value)
            tip = element("title", f"{name}, {axes[i]}: {show(value)}")
            parts.append(element("circle", tip, cx=at[0], cy=at[1], r=3, class_=f"dot {colour}"))
    said = "; ".join(
        f"{name}: {', '.join(f'{a} {show(v)}' for a, v in zip(axes, values, strict=True))}"
        for name, _, values in series
    )
    return frame(f"{title}. {said}.", height, parts, width)


def heat_map(
    title: str, columns: Sequence[str], rows: Sequence[tuple[str, Values]]
) -> Markup | None:
    """Cells in [0, 1], the fuller the colour the higher; an undefined one is empty."""
    if not any(value is not None for _, values in rows for value in values):
        return None
    left, top, tall = 110.0, 26.0, 30.0
    room = (WIDE - left - 4) / len(columns)
    parts = [
        element("text", name, x=left + room * (i + 0.5), y=top - 9, class_="tick middle")
        for i, name in enumerate(columns)
    ]
    said = []
    for number, (name, values) in enumerate(rows):
        y = top + tall * number
        parts.append(element("text", name, x=left - 8, y=y + tall / 2 + 4, class_="tick end"))
        for i, value in enumerate(values):
            if value is None:
                continue
            x = left + room * i
            tip = element("title", f"{name}, {columns[i]}: {show(value)}")
            parts.append(
                element(
                    "rect", tip, x=x + 1, y=y + 1, width=room - 2, height=tall - 2, rx=3,
                    class_="heat", fill_opacity=0.06 + 0.54 * max(0.0, min(1.0, value)),
                )
            )  # fmt: skip
            middle = {"x": x + room / 2, "y": y + tall / 2 + 4}
            parts.append(element("text", f"{value:.2f}", **middle, class_="cell middle"))
        told = zip(columns, values, strict=True)
        said.append(f"{name}: {', '.join(f'{c} {show(v)}' for c, v in told if v is not None)}")
    return frame(f"{title}. {'; '.join(said)}.", top + tall * len(rows) + 6, parts)


def share_chart(
    title: str, rows: Sequence[tuple[str, Mapping[str, float]]], colours: Mapping[str, str]
) -> Markup | None:
    """A bar a row, cut in its shares, which sum to 1."""
    drawn = [(name, shares) for name, shares in rows if sum(shares.values()) > 0]
    if not drawn:
        return None
    left, tall = 80.0, 40.0
    room = WIDE - left - 8
    parts, said = [], []
    for number, (name, shares) in enumerate(drawn):
        y, x = tall * number + 6, left
        parts.append(element("text", name, x=left - 8, y=y + 18, class_="tick end"))
        for part, share in shares.items():
            if share <= 0:
                continue
            tip = element("title", f"{name}, {part}: {share:.1%}")
            box = {"x": x, "y": y, "width": max(0.5, room * share - 1), "height": tall - 12}
            parts.append(element("rect", tip, **box, class_=f"fill {colours[part]}"))
            if share >= 0.06:
                middle = {"x": x + room * share / 2, "y": y + 18}
                parts.append(element("text", f"{share:.0%}", **middle, class_="on middle"))
            x += room * share
        said.append(f"{name}: {', '.join(f'{p} {s:.1%}' for p, s in shares.items())}")
    return frame(f"{title}. {'; '.join(said)}.", tall * len(drawn) + 8, parts)


def steps_chart(title: str, x_label: str, steps: Sequence[tuple[str, float]]) -> Markup | None:
    """How a figure in [0, 1] comes about: each bar goes from the value before to its own."""
    if not steps:
        return None
    left, tall, top = 110.0, 30.0, 8.0
    room, base = WIDE - left - 60, top + tall * len(steps)
    parts = []
    for value in (0, 0.25, 0.5, 0.75, 1):
        x = left + room * value
        parts.append(element("line", x1=x, x2=x, y1=top, y2=base, class_="grid"))
        parts.append(element("text", show(value), x=x, y=base + 15, class_="tick middle"))
    parts.append(element("text", x_label, x=left + room / 2, y=base + 31, class_="label middle"))
    before, said = 0.0, []
    for i, (name, value) in enumerate(steps):
        y, change = top + tall * i, value - before
        colour = "c-soft" if i == 0 else "c-3" if change >= 0 else "c-2"
        told = show(value) if i == 0 else f"{'+' if change >= 0 else '−'}{abs(change):.3f}"
        tip = element("title", f"{name}: {told}, {show(value)} in all")
        box = {"x": left + room * min(before, value), "width": max(1.0, room * abs(change))}
        parts.append(element("text", name, x=left - 8, y=y + tall / 2 + 4, class_="tick end"))
        parts.append(
            element("rect", tip, **box, y=y + 5, height=tall - 10, rx=2, class_=f"fill {colour}")
        )
        beside = left + room * max(before, value) + 6
        parts.append(element("text", told, x=beside, y=y + tall / 2 + 4, class_="tick"))
        said.append(f"{name} {told}")
        before = value
    return frame(f"{title}. {', '.join(said)}.", base + 36, parts)


def dot_chart(title: str, x_label: str, rows: Sequence[tuple[str, str, Values]]) -> Markup | None:
    """One dot a run in rows of (name, colour, values), and a line at each row's mean."""
    known = [(name, colour, [v for v in vs if v is not None]) for name, colour, vs in rows]
    drawn = [row for row in known if row[2]]
    if not drawn:
        return None
    left, tall, top = 130.0, 26.0, 8.0
    everything = [value for _, _, values in drawn for value in values]
    marks = ticks(min(everything), max(everything))
    low, high, base = marks[0], marks[-1], top + tall * len(drawn)
    scale = (WIDE - left - 20) / (high - low)
    parts = []
    for mark in marks:
        x = left + (mark - low) * scale
        parts.append(element("line", x1=x, x2=x, y1=top, y2=base, class_="grid"))
        parts.append(element("text", show(mark), x=x, y=base + 15, class_="tick middle"))
    middle = (left + WIDE - 20) / 2
    parts.append(element("text", x_label, x=middle, y=base + 31, class_="label middle"))
    said = []
    for i, (name, colour, values) in enumerate(drawn):
        y, mean = top + tall * (i + 0.5), sum(values) / len(values)
        at = left + (mean - low) * scale
        parts.append(element("text", name, x=left - 8, y=y + 4, class_="tick end"))
        parts.append(element("line", x1=at, x2=at, y1=y - 9, y2=y + 9, class_=f"whisker {colour}"))
        for value in values:
            tip = element("title", f"{name}: {show(value)}")
            x = left + (value - low) * scale
            parts.append(element("circle", tip, cx=x, cy=y, r=4, class_=f"dot {colour}"))
        said.append(f"{name}: {', '.join(map(show, values))}")
    return frame(f"{title}. {'; '.join(said)}.", base + 36, parts)
