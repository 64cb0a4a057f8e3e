"""Tasks of the service domains: levels, turns, splits, what stays hidden."""

from collections import Counter, defaultdict

import pytest

from progrl.dialogue.acts import asks_confirmation, contains, mentions
from progrl.dialogue.messages import Say
from progrl.dialogue.tasks import Task, check_disjoint, split_of
from progrl.dialogue.users import UserReply
from progrl.environments.service.replay import replay, turns
from tests.environments.desk import NAMES, identify, made, some, started, writes

AT_MOST = 18
# By level: fewest and most of the expert's turns where nothing is scheduled.
TURNS = {1: (2, 2), 2: (2, 5), 3: (5, 8), 4: (8, 11), 5: (12, AT_MOST)}
# A question that met a change of mind, a fact that the new goal needs, a call made again.
DETOURS = 3


def _check_expert(name: str, count: int, seed: int) -> None:
    desk = made(name)
    expert = desk.expert()
    for task in some(desk, count, seed=seed):
        history, outcome = replay(task, desk.environment(), expert, desk.user_view(task))
        assert outcome.success, task
        assert outcome.policy_kept
        assert outcome.domain == 1.0
        assert outcome.progress == pytest.approx(1.0)
        assert set(outcome.milestones) == {m.name for m in task.milestones}
        assert task.expert_turns == turns(history)
        fewest, most = TURNS[task.level]
        if task.schedule:
            assert fewest <= task.expert_turns + 1
            assert task.expert_turns <= min(most + DETOURS, AT_MOST)
        else:
            assert fewest <= task.expert_turns <= most, task


@pytest.mark.parametrize("name", NAMES)
def test_the_expert_solves_every_task_in_the_turns_it_states(name: str) -> None:
    _check_expert(name, 200, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_expert_solves_two_thousand(name: str) -> None:
    _check_expert(name, 2000, seed=4)


@pytest.mark.parametrize("name", NAMES)
def test_the_horizon_has_room_for_a_change_and_a_failure_at_once(name: str) -> None:
    desk = made(name, levels=[5], goal_change_rate=1.0, tool_failure_rate=1.0)
    tasks = some(desk, 120)
    assert all({"change", "failure"} <= task.schedule.keys() for task in tasks)
    assert max(task.expert_turns for task in tasks) <= AT_MOST


def test_retail_has_families_at_each_level_and_airline_shares_some() -> None:
    retail, airline = made("retail").families(), made("airline").families()
    assert len(retail) >= 12
    assert all(count >= 2 for count in Counter(level for _, level in retail).values())
    assert {level for _, level in retail} == {1, 2, 3, 4, 5}
    assert len(airline) >= 6
    shared = {("points", 1), ("compute", 1), ("person", 1), ("points_ask", 2)}
    assert shared <= {*retail} & {*airline}


def test_shared_tools_are_the_same_in_both_domains() -> None:
    retail, airline = (
        {tool.name: tool for tool in made(name).tools} for name in ("retail", "airline")
    )
    shared = retail.keys() & airline.keys()
    assert shared == {"find_user", "calculate", "transfer_to_human"}
    assert all(retail[name] == airline[name] for name in shared)


@pytest.mark.parametrize("name", NAMES)
def test_level_1_is_two_turns_and_level_5_twelve_or_more(name: str) -> None:
    by_level: defaultdict[int, list[int]] = defaultdict(list)
    for task in some(made(name), 300):
        by_level[task.level].append(task.expert_turns)
    assert set(by_level[1]) == {2}
    assert min(by_level[5]) >= 12
    means = [sum(by_level[level]) / len(by_level[level]) for level in range(1, 6)]
    assert means == sorted(means)


@pytest.mark.parametrize("name", NAMES)
def test_levels_and_families_are_drawn_evenly(name: str) -> None:
    desk = made(name)
    counts = Counter((task.level, task.family) for task in some(desk, 600))
    assert len(counts) == len(desk.families())
    for level in range(1, 6):
        own = [count for (at, _), count in counts.items() if at == level]
        assert sum(own) == 120
        assert max(own) - min(own) <= 1


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_tasks_and_another_gives_others(name: str) -> None:
    first, again = (some(made(name), 25, "validation", 5) for _ in range(2))
    assert first == again
    assert not {t.id for t in first} & {t.id for t in some(made(name), 25, "validation", 6)}
    assert len({task.id for task in first}) == 25


@pytest.mark.parametrize("name", NAMES)
def test_splits_share_nothing_whatever_the_seeds(name: str) -> None:
    desk = made(name)
    train = some(desk, 60, "train", 1) + some(desk, 60, "train", 2)
    validation, test = some(desk, 40, "validation", 1), some(desk, 40, "test", 2)
    check_disjoint(train=train, validation=validation, test=test)
    for split, tasks in (("train", train), ("validation", validation), ("test", test)):
        assert all(split_of(task.content_hash) == split for task in tasks)
        assert all(task.id == f"{name}-{task.content_hash[:16]}" for task in tasks)


@pytest.mark.parametrize("name", NAMES)
def test_tasks_come_back_whole_from_their_json(name: str) -> None:
    for task in some(made(name), 30):
        back = Task.from_json(task.to_json())
        assert back == task
        assert back.content_hash == task.content_hash


@pytest.mark.parametrize("name", NAMES)
def test_milestone_weights_sum_to_one(name: str) -> None:
    for task in some(made(name), 100):
        assert sum(m.weight for m in task.milestones) == pytest.approx(1.0)
        assert len({m.name for m in task.milestones}) == len(task.milestones)


@pytest.mark.parametrize("name", NAMES)
def test_the_query_holds_the_told_facts_and_no_others(name: str) -> None:
    desk = made(name)
    for task in some(desk, 200):
        for fact in desk.user_view(task).facts:
            assert mentions(task.query, fact.value) == fact.told, (task.query, fact)


@pytest.mark.parametrize("name", NAMES)
def test_queries_are_worded_in_many_ways(name: str) -> None:
    desk = made(name, levels=[1])
    starts: defaultdict[str, set[str]] = defaultdict(set)
    for task in some(desk, 300):
        starts[task.family].add(" ".join(task.query.split()[:6]))
    assert all(len(wordings) >= 5 for wordings in starts.values())


@pytest.mark.parametrize("name", NAMES)
def test_each_question_of_the_experts_asks_for_one_fact(name: str) -> None:
    desk = made(name)
    for task in some(desk, 200):
        view = desk.user_view(task)
        facts = (view.change.view if view.change else view).facts
        assert len({fact.value for fact in facts}) == len(facts)
        history, _ = replay(task, desk.environment(), desk.expert(), view)
        for message in history:
            if message.content.endswith("?") and not asks_confirmation(message.content):
                known = [*view.facts, *facts]
                asked = {fact.name for fact in known if contains(message.content, fact.cues)}
                assert len(asked) == 1, message.content


@pytest.mark.parametrize("name", NAMES)
def test_what_is_said_and_shown_is_short(name: str) -> None:
    desk = made(name)
    for task in some(desk, 100):
        history, _ = replay(task, desk.environment(), desk.expert(), desk.user_view(task))
        assert all(len(message.content) <= 190 for message in history)
        assert all(message.content == message.content.lower() for message in history)


@pytest.mark.parametrize("name", NAMES)
def test_doing_nothing_succeeds_nowhere(name: str) -> None:
    desk = made(name)
    for task in some(desk, 300):
        environment = started(desk, task)
        environment.step(Say("", closing=True))
        assert not environment.outcome().success, task
        assert environment.outcome().progress == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_a_goal_change_comes_before_any_write_is_possible(name: str) -> None:
    """Before the first reply neither goal's writes pass, whatever the agent has looked up."""
    desk = made(name, levels=[3, 4, 5], goal_change_rate=1.0)
    changed = [task for task in some(desk, 120) if "change" in task.schedule]
    assert len(changed) >= 80
    for task in changed:
        view = desk.user_view(task)
        assert view.change is not None
        assert view.change.at_reply == 1
        told = {fact.name for fact in view.facts if fact.told}
        assert "email" not in told
        assert not {"name", "zip"} <= told
        environment = started(desk, task)
        for goal in (task.goal, task.schedule["change"]["goal"]):
            for call in writes(desk, task, goal):
                assert environment.step(call).failed
        assert view.wishes != view.change.view.wishes or {f.value for f in view.facts} != {
            f.value for f in view.change.view.facts
        }


@pytest.mark.parametrize("name", NAMES)
def test_second_thoughts_are_about_as_frequent_as_asked_for(name: str) -> None:
    tasks = some(made(name, levels=[3, 4, 5]), 600)
    open_to_it = [task for task in tasks if task.family != "lost"]
    share = sum("change" in task.schedule for task in open_to_it) / len(open_to_it)
    assert 0.1 < share < 0.2
    failing = sum("failure" in task.schedule for task in tasks) / len(tasks)
    assert 0.06 < failing < 0.14


@pytest.mark.parametrize("name", NAMES)
def test_the_changed_goal_is_what_counts(name: str) -> None:
    """Who serves the first goal although it changed has not succeeded."""
    desk = made(name, levels=[3, 4, 5], goal_change_rate=1.0, tool_failure_rate=0.0)
    for task in [task for task in some(desk, 60) if "change" in task.schedule]:
        environment = started(desk, task)
        old = writes(desk, task, task.goal)
        assert old != writes(desk, task, task.schedule["change"]["goal"])
        environment.step(Say("what is your email ?"))
        environment.hear(UserReply(task.schedule["change"]["text"], "change_goal"))
        identify(environment)
        assert not any(environment.step(call).failed for call in old)
        assert not environment.outcome().success
