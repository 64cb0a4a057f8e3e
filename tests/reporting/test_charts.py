import math
from xml.etree import ElementTree

from progrl.reporting.charts import (
    bar_chart,
    dot_chart,
    heat_map,
    radar_chart,
    share_chart,
    steps_chart,
)
from progrl.reporting.svg import Range, interval_chart, show


def elements(chart, name, kind=""):
    found = ElementTree.fromstring(chart).findall(f".//{name}")
    return [e for e in found if kind in e.get("class", "")]


def test_bars_are_as_high_as_their_values():
    bars = [Range("SFT", "c-sft", 0.5, 0.25, 0.75), Range("GRPO", "c-grpo", 1.0, None, None)]
    chart = bar_chart("T", "success", [("retail", bars), ("airline", [])])
    half, whole = elements(chart, "rect", "fill")
    # From 10 to 226: 216 in all.
    assert (float(half.get("height")), float(whole.get("height"))) == (108, 216)
    (error,) = elements(chart, "line", "error")
    assert (float(error.get("y1")), float(error.get("y2"))) == (226 - 54, 226 - 162)
    label = ElementTree.fromstring(chart).get("aria-label")
    assert label == "T. retail: SFT 0.5, GRPO 1; airline: ."


def test_a_radar_has_its_values_at_their_distance_from_the_centre():
    chart = radar_chart("T", ["a", "b", "c"], [("GRPO", "c-grpo", [1.0, 0.5, 0.0])])
    dots = elements(chart, "circle")
    far = [math.dist((float(d.get("cx")), float(d.get("cy"))), (220, 150)) for d in dots]
    assert [round(x / 104, 2) for x in far] == [1.0, 0.5, 0.0]
    assert float(dots[0].get("cx")) == 220 and float(dots[0].get("cy")) == 46


def test_a_heat_map_leaves_undefined_cells_empty():
    chart = heat_map("T", ["x", "y"], [("a", [0.0, None]), ("b", [1.0, 0.5])])
    cells = elements(chart, "rect", "heat")
    assert [float(c.get("fill-opacity")) for c in cells] == [0.06, 0.6, 0.33]
    assert [e.text for e in elements(chart, "text", "cell")] == ["0.00", "1.00", "0.50"]


def test_shares_lie_end_to_end():
    chart = share_chart("T", [("paper", {"a": 0.25, "b": 0.75}), ("no", {"a": 0.0, "b": 0.0})],
                        {"a": "c-1", "b": "c-2"})  # fmt: skip
    one, other = elements(chart, "rect")
    assert float(other.get("x")) - float(one.get("x")) == 0.25 * 632
    assert [e.text for e in elements(chart, "text", "on")] == ["25%", "75%"]


def test_steps_begin_where_the_last_one_ended():
    chart = steps_chart("T", "x", [("base", 0.25), ("+ a", 0.75), ("+ b", 0.5)])
    base, more, less = elements(chart, "rect")
    room = 720 - 110 - 60
    assert float(more.get("x")) == 110 + 0.25 * room and float(more.get("width")) == 0.5 * room
    assert float(less.get("x")) == 110 + 0.5 * room and float(less.get("width")) == 0.25 * room
    assert "c-3" in more.get("class") and "c-2" in less.get("class")
    assert "base 0.25, + a +0.500, + b −0.250" in ElementTree.fromstring(chart).get("aria-label")
    assert base.get("class") == "fill c-soft"


def test_every_run_is_a_dot_and_the_bar_their_mean():
    chart = dot_chart("T", "success", [("full", "c-grpo", [0.0, 1.0, None]), ("none", "c", [None])])
    dots, (bar,) = elements(chart, "circle"), elements(chart, "line", "whisker")
    xs = [float(d.get("cx")) for d in dots]
    assert len(xs) == 2 and float(bar.get("x1")) == sum(xs) / 2


def test_intervals_on_an_axis_with_negative_values():
    rows = [("a", [Range("x", "c-1", -0.5, -1.0, 0.0)])]
    chart = interval_chart("T", "x", rows, (-1.0, 0.0, 1.0), 100)
    (whisker,) = elements(chart, "line", "whisker")
    assert float(whisker.get("x1")) == 100 and float(whisker.get("x2")) == 100 + (428 - 100) / 2


def test_an_interval_is_cut_at_the_end_of_its_axis():
    chart = interval_chart("T", "x", [("a", [Range("x", "c-1", 0.75, 0.5, 1.25)])])
    (whisker,) = elements(chart, "line", "whisker")
    assert float(whisker.get("x2")) == 428 and "[0.5, 1.25]" in chart


def test_large_numbers_are_written_out():
    assert [show(v) for v in (0.12345, 999.4, 5000, -12800.0, 0)] == [
        "0.123", "999", "5,000", "-12,800", "0"
    ]  # fmt: skip


def test_nothing_is_drawn_of_nothing():
    undefined = [("a", [Range("x", "c", None, None, None)])]
    assert bar_chart("T", "y", undefined) is None
    assert radar_chart("T", ["a", "b"], [("x", "c", [1.0, 1.0])]) is None
    assert radar_chart("T", ["a", "b", "c"], []) is None
    assert heat_map("T", ["a"], [("x", [None])]) is None
    assert share_chart("T", [("x", {"a": 0.0})], {"a": "c"}) is None
    assert steps_chart("T", "x", []) is None
    assert dot_chart("T", "x", [("a", "c", [None])]) is None
