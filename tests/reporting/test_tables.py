import pytest

from progrl.reporting.tables import interval, markdown, number, results_table, verdict

FIGURE = {"mean": 0.5, "low": 0.4, "high": 0.625, "episodes": 80, "seeds": 1}
NONE = {"mean": None, "low": None, "high": None, "episodes": 0, "seeds": 1}
EVALUATE = {
    "benchmarks": {
        "retail": {
            "agents": {
                "sft": {"success": FIGURE, "reward": FIGURE, "turns": {**FIGURE, "mean": 7.25}},
                "grpo": {"success": NONE, "reward": NONE, "turns": NONE},
            },
            "grpo_minus_sft": {"mean": 0.02, "low": -0.01, "high": 0.05, "tasks": 80, "seeds": 1},
        }
    }
}


@pytest.mark.parametrize(
    ("value", "digits", "signed", "shown"),
    [
        (0.126, 2, False, "0.13"),
        (-0.5, 1, False, "−0.5"),
        (0.5, 2, True, "+0.50"),
        (-0.0004, 2, True, "0.00"),
        (0.0004, 2, True, "0.00"),
        (None, 2, False, "undefined"),
    ],
)
def test_numbers(value, digits, signed, shown):
    assert number(value, digits, signed) == shown


def test_an_interval_and_its_absence():
    assert interval(FIGURE) == "0.50 [0.40, 0.62]"
    assert interval(NONE) == "undefined"
    assert interval({**FIGURE, "low": None, "high": None}) == "0.50"


def test_results_by_benchmark_and_agent():
    rows = results_table(EVALUATE)
    assert [row["agent"] for row in rows] == ["SFT", "GRPO", "GRPO − SFT"]
    assert rows[0] == {
        "benchmark": "retail",
        "agent": "SFT",
        "success": "0.50 [0.40, 0.62]",
        "reward": "0.50 [0.40, 0.62]",
        "turns": "7.2",
        "episodes": "80",
        "seeds": "1",
    }
    assert rows[1]["success"] == "undefined"
    assert rows[2]["success"] == "+0.020 [−0.010, +0.050]"
    assert rows[2]["episodes"] == "80 pairs"
    assert len({tuple(row) for row in rows}) == 1


def test_markdown():
    rows = [{"a": "1", "b": "x|y"}, {"a": "2", "b": ""}]
    assert markdown(rows) == "| a | b |\n| --- | --- |\n| 1 | x\\|y |\n| 2 |  |\n"
    assert markdown([]) == ""


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (0.01, 0.2, "better"),
        (-0.2, -0.01, "worse"),
        (-0.1, 0.1, "undecided"),
        (0.0, 0.1, "undecided"),
        (None, None, "undecided"),
    ],
)
def test_a_difference_is_decided_only_by_an_interval_without_0(low, high, word):
    assert verdict({"low": low, "high": high}) == word
