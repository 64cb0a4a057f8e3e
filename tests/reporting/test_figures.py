from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from progrl.reporting.figures import grpo_figures, horizon_branches, level_figure, sft_figures
from progrl.reporting.svg import Range, Series, interval_chart, line_chart, ticks

from .run import grpo_row, sft_row


def elements(chart, name):
    return ElementTree.fromstring(chart).findall(f".//{name}")


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_hold_their_range(low, width):
    made = ticks(low, low + width)
    slack = 1e-6 * max(abs(low), width, 1)
    assert 2 <= len(made) <= 8
    assert made[0] <= low + slack and made[-1] >= low + width - slack
    assert made == sorted(set(made))


def test_ticks_are_round():
    assert ticks(0, 1) == [0, 0.25, 0.5, 0.75, 1]
    assert ticks(0, 20) == [0, 5, 10, 15, 20]
    assert ticks(0, 0) == [0, 0.25, 0.5, 0.75, 1]
    assert ticks(-2, -2)[0] == -2 and ticks(-2, -2)[-1] == 0


def test_steps_are_whole():
    assert ticks(0, 12, 5, whole=True) == [0, 5, 10, 15]
    assert ticks(1, 3, 5, whole=True) == [1, 2, 3]
    assert ticks(0, 120, 5, whole=True) == [0, 25, 50, 75, 100, 125]


def test_a_line_breaks_where_there_is_no_value():
    points = [(0, 1.0), (1, 2.0), (2, None), (3, 1.0), (4, 1.0)]
    chart = line_chart("T", "step", "y", [Series("s", "c-1", points)])
    path = elements(chart, "path")[0].get("d")
    assert path.count("M") == 2 and path.count("L") == 2
    assert len(elements(chart, "circle")) == 4


def test_a_step_line_has_no_slopes():
    chart = line_chart("T", "x", "y", [Series("s", "c-1", [(0, 1.0), (1, 3.0)], "step")])
    path = elements(chart, "path")[0].get("d")
    assert "L" not in path and "H" in path and "V" in path


def test_a_chart_is_drawn_within_its_box():
    points = [(x, y) for x, y in enumerate([-3.0, 0.5, 12.0])]
    chart = line_chart("T", "x", "y", [Series("s", "c-1", points)])
    for circle in elements(chart, "circle"):
        assert 0 <= float(circle.get("cx")) <= 440 and 0 <= float(circle.get("cy")) <= 230


def test_charts_without_data_are_not_drawn():
    assert line_chart("T", "x", "y", []) is None
    assert line_chart("T", "x", "y", [Series("s", "c-1", [(1, None)])]) is None
    assert interval_chart("T", "x", [("level 1", [Range("SFT", "c", None, None, None)])]) is None
    for figure in [*grpo_figures([]), *sft_figures([]), level_figure("retail", {})]:
        assert figure.chart is None and not figure.legend
    assert horizon_branches([]) is None


def test_words_in_charts_are_escaped_and_said():
    chart = line_chart("<T>", "x", "y", [Series("<a&b>", "c-1", [(1, 2.0)])])
    root = ElementTree.fromstring(chart)
    assert root.get("role") == "img"
    assert root.get("aria-label") == "<T>. Line chart by x: <a&b> from 2 to 2."


def test_an_interval_chart_shows_what_is_defined():
    rows = [
        ("level 1", [Range("SFT", "c-sft", 0.5, 0.25, 0.75), Range("GRPO", "c", 1.0, None, None)])
    ]
    chart = interval_chart("T", "success", rows)
    whisker = [e for e in elements(chart, "line") if "whisker" in e.get("class")]
    dots = elements(chart, "circle")
    assert len(whisker) == 1 and len(dots) == 2
    middle = (float(whisker[0].get("x1")) + float(whisker[0].get("x2"))) / 2
    assert abs(middle - float(dots[0].get("cx"))) < 0.02


def test_the_share_of_groups_with_a_signal_by_hand():
    figures = {f.title: f for f in grpo_figures([grpo_row(1), grpo_row(2)])}
    # 8 groups, of which 2 without variance and 1 invalid: 5/8.
    assert "0.625" in figures["Groups with a signal"].chart
    assert [name for name, _ in figures["Success"].legend] == ["this step", "window p_t", "probe"]
    assert figures["Entropy"].legend == ()


def test_learned_weights_are_drawn_by_domain_and_only_where_there_are_some():
    fixed = [figure.title for figure in grpo_figures([grpo_row(0), grpo_row(1)])]
    assert not any("weights" in title or "foreseen" in title for title in fixed)
    weights = {"task": 0.5, "progress": 0.25, "efficiency": 0.125, "domain": 0.125}
    seen = {"episodes": 8, "predicted": 0.375, "observed": 0.5, "loss": 0.6, "error": 0.0625}
    learned = [
        grpo_row(0),
        grpo_row(1, weights={"shop": weights, "air": weights}, calibration={"shop": seen}),
    ]
    figures = {f.title: f for f in grpo_figures(learned)}
    assert list(figures)[len(fixed) :] == [
        *("Learned weights, air", "Success foreseen, air"),
        *("Learned weights, shop", "Success foreseen, shop"),
    ]
    shop = figures["Learned weights, shop"]
    assert [name for name, _ in shop.legend] == ["task", "progress", "efficiency", "declared"]
    assert "0.25" in shop.chart
    assert all(value in figures["Success foreseen, shop"].chart for value in ("0.375", "0.0625"))
    assert figures["Success foreseen, air"].chart is None


def test_the_warm_starts_phases_are_apart():
    loss, rate = sft_figures([sft_row(1, "copy"), sft_row(2, "copy"), sft_row(3, "sft")])
    assert [name for name, _ in loss.legend] == ["copy warm-up", "training dialogues"]
    assert len(elements(loss.chart, "path")) == 2 and rate.chart is not None


def test_whether_the_horizon_adapted():
    ramp = horizon_branches([grpo_row(i, branch="low") for i in range(4)])
    assert "did not adapt" in ramp.sentence and "'low'" in ramp.sentence
    adapted = horizon_branches([grpo_row(1, branch=b) for b in ("low", "low", "low", "high")])
    assert "adapted: its speed" in adapted.sentence
    assert [(name, share) for name, share, _ in adapted.shares] == [("low", 0.75), ("high", 0.25)]
    assert "never moved" in horizon_branches([grpo_row(1, branch="hold")]).sentence
