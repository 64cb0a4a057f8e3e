"""The scripted user of a gym, and the bounds of its rewards, in whole episodes."""

import asyncio
from dataclasses import replace

import pytest

from progrl.agent.seats import ExpertAgent
from progrl.dialogue.messages import Message
from progrl.dialogue.trajectories import End
from progrl.environments.gyms.telepathy import Telepathy, TelepathyEnvironment
from progrl.users.contracts import Profile
from progrl.users.profiles import profile
from progrl.users.scripted import own_user
from tests.environments.desk import made
from tests.environments.gym import episodes, stream

PLAIN = replace(profile("plain"), verbosity=0.0)


def answers(manner: Profile, questions: int) -> list[tuple[str, bool]]:
    """What the user says to so many questions."""
    played = Telepathy()
    user, task = own_user(played), stream(played, 1)[0]
    assert user is not None
    history, said = [Message("user", task.query)], []
    for _ in range(questions):
        history.append(Message("assistant", "is it alive ?"))
        reply = asyncio.run(user.reply(history, played.user_view(task), manner))
        history.append(Message("user", reply.text))
        said.append((reply.text, reply.leaves))
    return said


def test_it_leaves_when_its_patience_is_used_up() -> None:
    said = answers(replace(PLAIN, patience=2), 3)
    assert [leaves for _, leaves in said] == [False, False, True]


def test_a_verbose_user_says_the_same_in_more_words() -> None:
    plain, verbose = answers(PLAIN, 12), answers(replace(PLAIN, verbosity=1.0), 12)
    pairs = list(zip(plain, verbose, strict=True))
    assert all(long.endswith(short) for (short, _), (long, _) in pairs)
    assert any(long != short for (short, _), (long, _) in pairs)
    assert answers(PLAIN, 12) == plain


def test_desks_bring_no_user_of_their_own() -> None:
    assert own_user(made("retail")) is None


def test_a_reward_outside_of_the_declared_bounds_is_a_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(TelepathyEnvironment, "reward_bounds", (0.0, 0.5))
    played = Telepathy()
    for trajectory in episodes(played, ExpertAgent(), stream(played, 3)):
        assert trajectory.end is End.FAULT
        assert "declares 0 to 0.5" in trajectory.fault
