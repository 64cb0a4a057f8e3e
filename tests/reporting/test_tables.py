import pytest

from progrl.reporting.tables import (
    dynamics_table,
    interaction_table,
    interval,
    markdown,
    number,
    results_table,
    verdict,
)

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


def test_interaction_by_agent():
    agents = {"sft": {"satisfaction": FIGURE, "coherence": NONE}, "grpo": {"satisfaction": NONE}}
    # Coherence is left out: one agent lacks it.
    assert interaction_table({"agents": agents}) == [
        ("user satisfaction", ["0.50 [0.40, 0.62]", "undefined"])
    ]


def test_tool_efficiency_and_retention_have_their_rows():
    summary = {
        "agents": {"expert": {}, "sft": {}, "grpo": {}},
        "tool_efficiency": {"grpo_minus_sft": {"grpo": FIGURE, "sft": NONE}},
    }
    kept = {
        "expert": {"value": 0.98, "kind": "ratio"},
        "sft": {"value": 0.1, "kind": "absolute"},
        "grpo": None,
    }
    assert interaction_table(summary, kept) == [
        (
            "tool efficiency where GRPO and SFT both succeed",
            ["", "undefined", "0.50 [0.40, 0.62]"],
        ),
        ("retention of success", ["0.98", "0.10 (absolute)", "undefined"]),
    ]


def test_training_by_its_probe():
    rows = [
        {"step": 0, "probe": 0.2},
        {"step": 1, "probe": 0.5, "episodes": 1000, "tokens_sampled": 20_000, "kl": 0.25},
        {"step": 2, "probe": 0.7, "episodes": 1000, "tokens_sampled": 30_000, "kl": 0.5},
        {"step": 3, "probe": 0.6, "episodes": 2000, "tokens_sampled": 50_000, "kl": 0.25},
    ]
    shown = {name: value for name, value, _ in dynamics_table(rows, 200)}
    assert shown["probe: start, best, end"] == "0.20, 0.70, 0.60"
    assert shown["learning efficiency"] == "0.60"  # (0.5 - 0.2) / (0.7 - 0.2)
    # The threshold 0.2 + 0.9 * 0.4 = 0.56 is passed at the second step.
    assert shown["episodes to threshold"] == "2,000 (50% of the budget left)"
    assert shown["tokens to threshold"] == "50,000 (50% of the budget left)"
    assert shown["gain"] == "+0.400" and shown["policy KL in all"] == "1.000"
    assert shown["gradient norm"] == "undefined"


def test_training_without_a_gain_or_without_a_probe():
    flat = [{"step": 0, "probe": 0.5}, {"step": 1, "probe": 0.5, "episodes": 10}]
    shown = {name: value for name, value, _ in dynamics_table(flat, 100)}
    for name in ("learning efficiency", "stability", "episodes to threshold"):
        assert shown[name] == "undefined"
    assert dynamics_table([{"step": 1, "probe": None}], 100) == []
