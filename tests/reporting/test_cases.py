from dataclasses import replace

import pytest

from progrl.config import load_config
from progrl.dialogue.messages import Say, ToolCall
from progrl.evaluation.metrics import measure
from progrl.reporting.cases import NO_DIALOGUE, case_studies
from progrl.reporting.page import render
from progrl.reporting.sources import gather
from progrl.reporting.tables import advice_table
from tests.evaluation.records import make_task, make_trajectory

from .run import write_run

BYE = Say("Bye.", closing=True)
LOOK, CANCEL = ToolCall("look_up", {"order": "12"}), ToolCall("cancel", {"order": "12"})


@pytest.fixture(scope="module")
def config(request):
    return load_config(request.config.rootpath / "params.yaml")


@pytest.fixture(scope="module")
def bare(tmp_path_factory, config):
    root = tmp_path_factory.mktemp("run")
    write_run(root, config)
    return gather(root, root, config)


def played(config):
    """Two tasks that change their goal (one is met), one whose tool fails, one plain."""
    tasks = [
        make_task(0, {"change": {"turn": 1}}),
        make_task(1, {"change": {"turn": 1}}),
        make_task(2, {"failure": {"call": 1}}),
        make_task(3),
    ]
    asks = (Say("Which order?"), LOOK, CANCEL, BYE)
    dialogues = [
        make_trajectory(tasks[0], asks, success=False, progress=0.0),
        make_trajectory(tasks[1], asks),
        make_trajectory(tasks[2], (LOOK, LOOK, BYE)),
        make_trajectory(tasks[3], (LOOK, BYE), success=False, progress=0.0),
    ]
    for one in dialogues[:2]:
        one.turns[0].observation, one.turns[0].source, one.turns[0].act = (
            "No, exchange it.", "user", "change_goal",
        )  # fmt: skip
    dialogues[2].turns[0].failed = True
    results = [measure(d, t, 0, config.reward) for d, t in zip(dialogues, tasks, strict=True)]
    return dialogues, results


@pytest.fixture
def material(bare, config):
    dialogues, results = played(config)
    return replace(
        bare,
        examples={"retail": {"grpo": dialogues, "sft": []}, "airline": {}},
        results={"retail": {"grpo": results, "sft": results[:1], "expert": results}},
    )


def test_a_goal_that_changed_and_was_met(material):
    case = case_studies(material)[0]
    assert "in reply to turn 1, and 3 turns later the new one is met" in case.told
    assert case.side.success and case.side.entries[2].text == "No, exchange it."
    assert case.rows == [
        ["retail: SFT", "0.00", "1", "undefined", "0", "4.0"],
        ["retail: GRPO", "0.50", "2", "0.50", "2", "4.0"],
    ]


def test_tools_by_the_kind_of_query(material):
    case = case_studies(material)[1]
    assert case.told.endswith("look_up → cancel.")
    # Of look_up → cancel, twice, look_up twice, and look_up once; calls 2, 2, 2, 1.
    assert case.rows == [["retail: family 1", "4", "0.50", "look_up → cancel", "50%", "1.8", "1.8"]]


def test_a_failure_that_was_overcome(material):
    case = case_studies(material)[2]
    assert "the call of turn 1 fails, that of turn 2 goes well" in case.told
    assert "after 3 turns" in case.told and case.side.entries[1].failed
    assert case.rows[1] == ["retail: GRPO", "1.00", "1", "0.33", "3", "3.0"]


def test_where_no_dialogue_fits_it_is_said(bare):
    change, _, failure = case_studies(bare)
    assert change.side is failure.side is None
    assert change.told == failure.told == NO_DIALOGUE
    assert NO_DIALOGUE in render(bare)
    assert not any(case.rows for case in case_studies(replace(bare, results={}, examples={})))


def test_the_cases_are_on_the_page(material):
    text = render(material)
    assert "A failure that was injected and overcome" in text and "No, exchange it." in text


def advice():
    figure = {"mean": 0.5, "low": 0.4, "high": 0.6, "episodes": 10, "seeds": 1}
    kinds = {
        kind: {"success": {**figure, "mean": mean}, "reward": figure, "turns": figure}
        for kind, mean in (("hint", 0.6), ("off", 0.5), ("random", 0.3))
    }
    difference = {"tasks": 10, "seeds": 1}
    return {
        "kind": "hint",
        "agent": "grpo",
        "benchmarks": {
            "retail": {
                "agents": kinds,
                "hint_minus_off": {"mean": 0.1, "low": -0.1, "high": 0.3, **difference},
                "hint_minus_random": {"mean": 0.3, "low": 0.1, "high": 0.5, **difference},
            }
        },
    }


def test_what_advice_is_worth(bare):
    rows = advice_table(advice())
    assert [row["advice"] for row in rows] == [
        "hint", "off", "random", "hint − off", "hint − random"
    ]  # fmt: skip
    assert [row["verdict"] for row in rows] == ["", "", "", "undecided", "better"]
    assert rows[3]["success"] == "+0.100 [−0.100, +0.300]"
    assert len({tuple(row) for row in rows}) == 1
    text = render(replace(bare, evaluate={**bare.evaluate, "advice": advice()}))
    assert "What advice on tools is worth" in text and "hint − random" in text
    assert "means over its seeds" not in text
    assert "What advice on tools is worth" not in render(bare)
