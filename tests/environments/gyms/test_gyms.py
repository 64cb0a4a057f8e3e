"""What holds in every gym."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from progrl.agent.seats import DoNothingAgent, ExpertAgent, RandomAgent
from progrl.dialogue.acts import mentions
from progrl.dialogue.messages import Action, Message, Say, ToolCall
from progrl.dialogue.tasks import Task, check_disjoint, split_of
from progrl.dialogue.trajectories import End
from progrl.environments.choices import ChoiceDomain
from progrl.environments.contracts import Answering, Domain
from progrl.environments.gyms import Gym
from progrl.environments.gyms.base import MOST_TURNS
from progrl.environments.registry import domain
from progrl.errors import ConfigurationError
from progrl.users.contracts import Profile, UserSimulator
from progrl.users.profiles import profile
from progrl.users.scripted import RuleUser, own_user
from tests.environments.gym import do, episodes, gym, stream, user_of

NAMES = ("function", "telepathy", "travel", "search", "intention", "persuade", "turtle")
ALLOWED = {"action", "search", "answer", "finish"}
INTERFACES = ("native", "three_choice")
LUCKY = {"telepathy": 35}
"""Of 100 episodes: to name one of four things is no feat, and a wrong guess ends nothing."""

every = pytest.mark.parametrize("name", NAMES)


@every
def test_it_stands_behind_three_choices_unless_told_otherwise(name: str) -> None:
    wrapped, native = domain(name), domain(name, {"interface": "native"})
    assert isinstance(wrapped, ChoiceDomain)
    assert isinstance(native, Gym)
    assert [tool.name for tool in wrapped.tools] == ["interact_with_env"]
    assert set(wrapped.tools[0].parameters["properties"]["choice"]["enum"]) <= ALLOWED
    assert isinstance(wrapped, Answering)
    assert isinstance(own_user(wrapped), RuleUser)
    assert stream(wrapped, 10) == stream(native, 10)


@every
def test_options_are_checked(name: str) -> None:
    assert {t.level for t in stream(gym(name, levels=[2, 5]), 20)} == {2, 5}
    with pytest.raises(ConfigurationError, match=r"publish.*interface"):
        gym(name, publish=True)


@every
def test_tasks_are_many_and_the_splits_apart(name: str) -> None:
    wrapped = gym(name)
    train, again = stream(wrapped, 300), stream(gym(name), 300)
    assert train == again
    validation, test = stream(wrapped, 100, "validation"), stream(wrapped, 100, "test", seed=8)
    check_disjoint(train=train, validation=validation, test=test)
    assert len({t.content_hash for t in [*train, *validation, *test]}) == 500
    assert all(split_of(t.content_hash) == "test" for t in test)
    assert not {t.id for t in train} & {t.id for t in stream(wrapped, 50, seed=9)}
    assert Counter(t.level for t in train) == dict.fromkeys(range(1, 6), 60)
    assert {(t.family, t.level) for t in train} == set(wrapped.families())  # type: ignore[attr-defined]
    for task in train[:50]:
        assert Task.from_json(task.to_json()) == task
        assert sum(m.weight for m in task.milestones) == pytest.approx(1.0)
        assert 1 < task.expert_turns <= MOST_TURNS


@every
@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("published", [False, True])
def test_the_expert_succeeds_in_500_episodes(name: str, interface: str, published: bool) -> None:
    played = gym(name, interface=interface, published=published)
    done = episodes(played, ExpertAgent(), stream(played, 500), horizon=MOST_TURNS, family="all")
    assert all(t.valid for t in done), [t.fault for t in done if t.fault][:3]
    assert sum(t.success for t in done) >= 0.98 * 500
    for trajectory in done:
        assert trajectory.reward_bounds is not None
        low, high = trajectory.reward_bounds
        assert all(low <= turn.reward <= high + 1e-9 for turn in trajectory.turns)
        assert not trajectory.success or trajectory.end is End.DONE


@every
@pytest.mark.parametrize("interface", INTERFACES)
def test_doing_nothing_earns_nothing(name: str, interface: str) -> None:
    played = gym(name, interface=interface)
    for trajectory in episodes(played, DoNothingAgent(), stream(played, 100)):
        assert not trajectory.success
        assert sum(turn.reward for turn in trajectory.turns) == 0.0
        assert trajectory.outcome is not None
        assert trajectory.outcome.progress == trajectory.outcome.domain == 0.0


@every
@pytest.mark.parametrize("interface", INTERFACES)
def test_acting_at_random_breaks_nothing_and_hardly_succeeds(name: str, interface: str) -> None:
    played = gym(name, interface=interface)
    done = episodes(played, RandomAgent(), stream(played, 100))
    assert all(t.valid for t in done), [t.fault for t in done if t.fault][:3]
    assert sum(t.success for t in done) <= LUCKY.get(name, 5)


@every
def test_the_same_seeds_give_the_same_episodes(name: str) -> None:
    first, again = (
        [asdict(t) for t in episodes(gym(name), agent, stream(gym(name), 30))]
        for agent in (RandomAgent(), RandomAgent())
    )
    assert first == again


@every
def test_finish_ends_without_reward_and_nothing_goes_on(name: str) -> None:
    environment = gym(name).environment()
    environment.reset(stream(gym(name), 1)[0])
    end = do(environment, "finish", "bye")
    assert end.done
    assert end.reward == 0.0
    assert not environment.outcome().success
    after = do(environment, "answer", "1")
    assert after.failed
    assert after.reward == 0.0


@every
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["action", "search", "answer", "finish", "think"]), st.text(max_size=60))
def test_nothing_that_an_agent_writes_raises(name: str, choice: str, content: str) -> None:
    for task in stream(gym(name), 2):
        environment = gym(name).environment()
        environment.reset(task)
        do(environment, choice, content)
        environment.step(ToolCall("interact_with_env", {"choice": choice, "words": content}))
        environment.step(ToolCall(content, {content: content}))
        environment.step(Say(content))
        environment.outcome()


@every
def test_what_is_hidden_is_in_no_opening(name: str) -> None:
    """Neither what the agent reads at first, nor what it always reads, tells of this task."""
    played = gym(name)
    always = f"{played.policy} {played.tools}"
    for task in stream(played, 200):
        view = played.user_view(task)
        for fact in view.facts:
            assert fact.told == mentions(task.query, fact.value), fact
        for secret in hidden(task):
            assert not mentions(task.query, secret), task
            assert not mentions(always, secret), task
            assert not mentions(view.query, secret)


def hidden(task: Task) -> list[str]:
    """What of a task's goal must not be read before it was found out."""
    match task.domain:
        case "function":
            return [task.goal["rule"], str(task.goal["result"])]
        case "telepathy":
            return [f"it is {task.goal['thing']}"]
        case "intention":
            return [detail["value"] for detail in task.goal["missing"]]
        case "persuade":
            return [c["worry"] for c in task.goal["concerns"] if not c["told"]]
        case "turtle":
            return [c["statement"] for c in task.goal["criteria"]]
        case "search":
            return [task.goal["answer"]]
        case "travel":
            wanted = [v for own in task.goal["wanted"].values() for v in own.values()]
            return [*wanted, *task.goal["best"].values()]
    raise AssertionError(task.domain)


@pytest.mark.slow
@every
@pytest.mark.parametrize("interface", INTERFACES)
def test_twenty_thousand_turns_a_second(name: str, interface: str) -> None:
    """Environment and user without rollout, by CPU time; the fastest of three runs."""
    played = gym(name, interface=interface)
    tasks = stream(played, 100)
    user, patient = user_of(played), replace(profile("plain"), patience=MOST_TURNS + 1)
    actions = {
        trajectory.task_id: [turn.action for turn in trajectory.turns if turn.action is not None]
        for trajectory in episodes(played, ExpertAgent(), tasks)
    }
    best = 0.0
    for _ in range(3):
        start = time.process_time()
        for task in tasks:
            _again(played, user, task, actions[task.id], patient)
        best = max(best, sum(map(len, actions.values())) / (time.process_time() - start))
    assert best >= 20_000, best


def _again(
    played: Domain, user: UserSimulator, task: Task, actions: Sequence[Action], manner: Profile
) -> None:
    environment, view = played.environment(), played.user_view(task)
    environment.reset(task)
    history = [Message("user", task.query)]
    for action in actions:
        result = environment.step(action)
        said = action.text if isinstance(action, Say) else result.said
        if said and not result.done:
            history.append(Message("assistant", said))
            try:
                user.reply(history, view, manner).send(None)  # type: ignore[attr-defined]
            except StopIteration as stop:
                environment.hear(stop.value)
                history.append(Message("user", stop.value.text))
