import json

import pytest

from progrl.config.training import Budget, FixedWeights, LearnedWeights, RewardConfig
from progrl.dialogue.messages import Say, ToolCall
from progrl.dialogue.trajectories import End
from progrl.errors import DataError
from progrl.evaluation import metrics
from progrl.evaluation.metrics import Result, by_task, end_shares, measure, pass_k, success

from .records import BYE, LOOK, make_result, make_task, make_trajectory

REWARD = RewardConfig(
    task=1.0,
    progress=0.5,
    efficiency=0.2,
    reference=Budget(kind="budget", factor=2.0),
    weights=FixedWeights(kind="fixed"),
)
LEARNED = LearnedWeights(
    kind="learned",
    floor=0.4,
    hidden=8,
    evidence=2.0,
    price=0.02,
    learning_rate=0.003,
    passes=10,
    window=64,
    min_episodes=32,
)


def test_a_success_by_hand():
    # Expert 2 turns, so T_opt = 4; 3 turns used: efficiency 1/4; 1 + 0.5 + 0.2/4 = 1.55.
    task = make_task()
    result = measure(make_trajectory(task, (LOOK, Say("Here?"), BYE)), task, 0, REWARD)
    assert (result.success, result.turns, result.tool_calls) == (True, 3, 1)
    assert result.efficiency == 0.25
    assert result.reward == pytest.approx(1.55)


def test_weights_that_training_learned_judge_nobody():
    learned = REWARD.model_copy(update={"weights": LEARNED})
    for ended in (True, False):
        task = make_task()
        played = make_trajectory(task, (LOOK, Say("Here?"), BYE), success=ended)
        assert measure(played, task, 0, learned) == measure(played, task, 0, REWARD)


def test_an_episode_cut_by_the_horizon_keeps_its_progress_alone():
    task = make_task()
    cut = make_trajectory(task, [LOOK] * 20, End.HORIZON, success=True, progress=0.6)
    result = measure(cut, task, 0, REWARD)
    assert result.success is False
    assert result.reward == pytest.approx(0.3)


def test_failed_calls_count_broken_messages_too():
    task = make_task()
    trajectory = make_trajectory(task, (LOOK, ToolCall("none"), BYE))
    trajectory.turns[0].failed = trajectory.turns[1].failed = True
    trajectory.turns[1].action = None
    result = measure(trajectory, task, 0, REWARD)
    assert (result.tool_calls, result.failed_calls) == (1, 2)


def test_a_fault_is_in_no_metric():
    task = make_task(schedule={"change": {"at_reply": 1}, "failure": {"tool": "x", "call": 1}})
    result = measure(make_trajectory(task, end=End.FAULT), task, 0, REWARD)
    assert not result.valid and result.fault == "EngineFault: gone"
    values = [*metrics.PROPORTIONS.values(), *metrics.MEANS.values(), *metrics.SHARES.values()]
    for value in values:
        assert value(result) is None
    assert end_shares([result]) is None
    assert by_task([result], success) == {}


def test_scheduled_events_define_their_metrics():
    plain, changed = make_task(1), make_task(2, {"change": {"at_reply": 2}})
    failing = make_task(3, {"failure": {"tool": "look_up", "call": 1}})
    of = [measure(make_trajectory(task), task, 0, REWARD) for task in (plain, changed, failing)]
    assert [metrics.goal_change_success(r) for r in of] == [None, 1.0, None]
    assert [metrics.recovery(r) for r in of] == [None, None, 1.0]


def test_an_early_leave_is_a_user_gone_without_its_goal():
    assert metrics.early_leave(make_result("a", False, end="left")) == 1
    assert metrics.early_leave(make_result("a", True, end="left")) == 0
    assert metrics.early_leave(make_result("a", False, end="closed")) == 0


def test_pass_k_by_hand():
    trials = [make_result("a", ok, trial=j) for j, ok in enumerate([True, True, True, False])]
    lost = [make_result("b", None, trial=0), make_result("b", True, trial=1)]
    # Task a: C(3,2)/C(4,2) = 1/2. Task b has a single valid trial, so pass^2 is undefined there.
    assert pass_k([*trials, *lost], 2) == {"a": 0.5}
    assert pass_k([*trials, *lost], 1) == {"a": 0.75, "b": 1.0}


def test_shares_of_ends_leave_faults_out():
    rows = [
        make_result("a"),
        make_result("b", False, end="horizon"),
        make_result("c", None),
        make_result("d", False, end="left"),
        make_result("e"),
    ]
    assert end_shares(rows) == {
        "closed": 0.5, "left": 0.25, "done": 0.0, "horizon": 0.25, "window": 0.0,
    }  # fmt: skip


def test_results_survive_the_disk():
    row = make_result("a", False, level=3)
    assert Result.from_json(json.loads(json.dumps(row.to_json()))) == row
    with pytest.raises(DataError, match="not a result"):
        Result.from_json({"task": "a", "colour": "red"})


def test_interaction_is_measured_too():
    task = make_task()
    trajectory = make_trajectory(task, (LOOK, Say("What is your zip?"), Say("Your zip?"), BYE))
    for turn, act in zip(trajectory.turns[1:3], ("inform", "repeat"), strict=True):
        turn.source, turn.act = "user", act
    trajectory.turns[0].gain, trajectory.turns[0].milestones = 1.0, ("done",)
    trajectory.tags["profile"] = "brisk"
    result = measure(trajectory, task, 0, REWARD)
    # The zip was asked for twice: (0.5 + 0.15) / (0.5 + 0.2 + 0.15), patience 16.
    assert result.satisfaction == pytest.approx(0.65 / 0.85)
    assert (result.coherent_turns, result.coherence_turns) == (2, 3)
    assert (result.effective_turns, result.informative_turns) == (2, 1)
    # 0.5 for progress at once; 1 for success in the fourth turn, of which efficiency has none.
    assert result.time_weighted == pytest.approx(0.5 + 1 / 4)
    assert result.tools == ("look_up",) and (result.changed_calls, result.failures) == (0, 0)
    assert result.expert_calls is None
    shares = {name: share(result) for name, share in metrics.SHARES.items()}
    assert shares == {"coherence": (2, 3), "changed_calls": None, "selection_accuracy": None}


def test_who_has_no_profile_has_no_patience():
    task = make_task()
    long = make_trajectory(task, (*[LOOK] * 18, BYE))
    assert measure(long, task, 0, REWARD).satisfaction == 1.0
    long.tags["profile"] = "brisk"
    assert measure(long, task, 0, REWARD).satisfaction == pytest.approx(0.5 / 0.65)
    long.tags["profile"] = "a person"
    assert measure(long, task, 0, REWARD).satisfaction == 1.0


def test_results_of_before_can_still_be_read():
    row = make_result("a").to_json()
    kept = {key: row[key] for key in list(row)[: list(row).index("policy_kept") + 1]}
    assert Result.from_json(kept).satisfaction is None
    tools = Result.from_json(json.loads(json.dumps(make_result("a", tools=("x",)).to_json())))
    assert tools.tools == ("x",)
