"""The table of training users by evaluation users, against numbers worked by hand."""

import pytest

from progrl.evaluation.summary import Summariser
from progrl.evaluation.transfer import transfer

from .records import make_result

SOLVED = {
    ("a", "a"): {"x": (1, 1, 1, 0), "y": (1, 0)},
    ("a", "b"): {"x": (1, 0, 1, 0), "y": (0, 0)},
    ("b", "a"): {"x": (1, 0, 0, 0), "y": (1, 1)},
    ("b", "b"): {"x": (1, 1, 1, 0), "y": (1, 1)},
}
RESULTS = {
    agent: {
        user: {
            name: [make_result(f"{name}{n}", bool(ok)) for n, ok in enumerate(solved)]
            for name, solved in SOLVED[agent, user].items()
        }
        for user in ("a", "b")
    }
    for agent in ("a", "b")
}
FOUND = transfer(RESULTS, {"both": ("x", "y"), "none": ()}, Summariser(0.95, 200, 1))["benchmarks"]


def success(name: str, agent: str, user: str) -> dict[str, float]:
    figure: dict[str, float] = FOUND[name]["evaluated_with"][user]["agents"][agent]["success"]
    return figure


def test_each_cell_is_the_share_of_its_own_episodes() -> None:
    assert list(FOUND) == ["x", "y", "both"]
    for (agent, user), by in SOLVED.items():
        for name, solved in by.items():
            figure = success(name, agent, user)
            assert figure["mean"] == pytest.approx(sum(solved) / len(solved))
            assert figure["low"] <= figure["mean"] <= figure["high"]
            assert figure["episodes"] == len(solved)


def test_benchmarks_together_weigh_by_their_tasks() -> None:
    assert success("both", "a", "a")["mean"] == pytest.approx(4 / 6)
    assert success("both", "b", "b")["mean"] == pytest.approx(5 / 6)


def test_differences_are_paired_by_task() -> None:
    by_user = FOUND["x"]["evaluated_with"]
    assert by_user["a"]["a_minus_b"]["mean"] == pytest.approx(3 / 4 - 1 / 4)
    assert by_user["b"]["a_minus_b"]["mean"] == pytest.approx(2 / 4 - 3 / 4)
    by_agent = FOUND["x"]["trained_with"]
    assert by_agent["a"]["a_minus_b"]["mean"] == pytest.approx(3 / 4 - 2 / 4)
    assert by_agent["b"]["a_minus_b"]["mean"] == pytest.approx(1 / 4 - 3 / 4)
    assert by_agent["b"]["a_minus_b"]["tasks"] == 4
    assert list(by_agent["a"]) == ["a_minus_b"]
