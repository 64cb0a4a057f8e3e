import time
from itertools import islice
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from progrl.agent.seats import ExpertAgent, RandomAgent
from progrl.dialogue.acts import affirms, asks_confirmation, contains, mentions
from progrl.dialogue.messages import Message
from progrl.dialogue.trajectories import End, Trajectory
from progrl.dialogue.users import GoalChange
from progrl.environments.registry import domain
from progrl.rollout import Clock, World
from progrl.seeds import Seed
from progrl.users.contracts import Profile
from progrl.users.profiles import draw, members
from progrl.users.scripted import ScriptedUser, StaticUser, misspell
from tests.users.desk import (
    ADDRESS,
    CANCEL,
    EMAIL,
    FACTS,
    POINTS,
    REDIRECT,
    answer,
    conversation,
    memory,
    view,
)

NAMES = ("retail", "airline")
MESSY = Profile("messy", 20, 0.5, 0.5, 0.5, 0.5, 1.0)
PROFILES = [MESSY, *(p for _, p in members("all"))]
WORDS = [
    "what is your email ?",
    "what is your zip ?",
    "which order ?",
    "what is the order to redirect ?",
    "new address and email ?",
    "cancel order 73933 . confirm ?",
    "cancel order 999 . confirm ?",
    "redirect order 62150 to 52 pine . confirm ?",
    "may i have your email to proceed ?",
    "order 73933 is done",
    "you have 104 points",
    "one moment",
    "anything else ?",
    "hello",
    "",
]


def played(name: str, agent: ExpertAgent | RandomAgent, family: str, count: int, clock: Clock):  # type: ignore[no-untyped-def]
    world = World(
        {name: domain(name)},
        {name: ScriptedUser(memory(name))},
        lambda seed: draw(family, seed),
        in_flight=64,
    )
    tasks = islice(world.domains[name].tasks("train", 5), count)
    root = Seed.root(2)
    specs = [
        world.spec(t, root.child("user", t.id), root.child("agent", t.id), 20, {}) for t in tasks
    ]
    return world.play(specs, agent, clock)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=8),
    st.sampled_from(PROFILES),
    st.integers(0, 10_000),
)
def test_what_holds_in_any_conversation(words: list[str], profile: Profile, seed: int) -> None:
    seen = view(CANCEL, REDIRECT, POINTS, seed=seed)
    history = conversation()
    known = {fact.name for fact in FACTS if fact.told}
    for text in words:
        history.append(Message("assistant", text))
        reply = answer(history, seen, profile)
        assert answer(list(history), seen, profile) == reply
        # Consent is what the environment hears as consent.
        if asks_confirmation(text):
            assert affirms(reply.text) == (reply.act == "confirm")
        # Nothing is told that was not asked for, but one thing more by an expert.
        new = [f for f in FACTS if f.name not in known and mentions(reply.text, f.value)]
        spare = [fact for fact in new if not contains(text, fact.cues)]
        assert len(spare) <= (1 if profile.expertise and reply.act == "inform" else 0)
        known |= {fact.name for fact in new}
        assert "104" not in reply.text
        assert "{" not in reply.text
        if reply.leaves:
            assert reply.act in ("thank", "leave")
            break
        assert reply.act not in ("thank", "leave")
        history.append(Message("user", reply.text))


def test_values_are_never_misspelt() -> None:
    for seed in range(200):
        seen = view(REDIRECT, seed=seed)
        history = conversation("email and new address ?", "why ?", "email and new address ?")
        text = answer(history, seen, MESSY).text
        assert EMAIL.value in text
        assert ADDRESS.value in text


def test_misspelling_changes_letters_and_leaves_slots_alone() -> None:
    wording = "please take {value} as the {label} , i think it works"
    typed = misspell(wording, 1.0, Random(3))
    before, after = wording.split(), typed.split()
    changed = {a for a, b in zip(before, after, strict=True) if a != b}
    assert changed <= {"please", "take", "think", "works"}
    assert len(changed) >= 3
    assert all(len(b) in (len(a), len(a) - 1) for a, b in zip(before, after, strict=True))
    assert misspell(wording, 0.0, Random(3)) == wording
    rate = sum(misspell("please", 0.25, Random(seed)) != "please" for seed in range(2000))
    assert rate / 2000 == pytest.approx(0.25, abs=0.04)


def test_a_change_of_the_goal_comes_at_its_reply_in_its_own_words() -> None:
    text = "sorry , i changed my mind . make it 1 oak"
    seen = view(CANCEL, change=GoalChange(2, text, view(POINTS)))
    history = conversation("what is your email ?")
    first = answer(history, seen, MESSY)
    assert first.act != "change_goal"
    history += [Message("user", first.text), Message("assistant", "you have 104 points")]
    second = answer(history, seen, MESSY)
    assert (second.text, second.act, second.leaves) == (text, "change_goal", False)
    history += [Message("user", second.text), Message("assistant", "you have 104 points")]
    assert answer(history, seen).act == "thank"


def test_a_reply_depends_on_its_seed_and_number() -> None:
    texts = {
        answer(conversation("what is your email ?"), view(CANCEL, seed=seed), MESSY).text
        for seed in range(50)
    }
    assert len(texts) > 25


def test_long_wordings_are_for_the_verbose() -> None:
    def length(verbosity: float) -> float:
        profile = Profile("any", 20, 1.0, verbosity, 0.0, 0.0, 0.0)
        seen = [view(CANCEL, seed=seed) for seed in range(100)]
        history = conversation("what is your email ?")
        return sum(len(answer(history, one, profile).text) for one in seen) / 100

    assert length(1.0) > length(0.0) + 5


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("family", ["a", "b"])
def test_the_expert_succeeds_with_every_user_of_every_domain(name: str, family: str) -> None:
    clock = Clock()
    trajectories: list[Trajectory] = played(name, ExpertAgent(), family, 150, clock)
    assert [t.fault for t in trajectories if not t.valid] == []
    assert [t.task_id for t in trajectories if not t.success] == []
    acts = {turn.act for t in trajectories for turn in t.turns}
    assert {"inform", "confirm", "clarify", "change_goal"} <= acts
    replies = sum(turn.source == "user" for t in trajectories for turn in t.turns)
    # 20,000 a second on a quiet machine.
    assert replies / clock.seconds["user"] > 1000


@pytest.mark.parametrize("name", NAMES)
def test_a_senseless_agent_is_left_with_a_word_that_says_so(name: str) -> None:
    trajectories: list[Trajectory] = played(name, RandomAgent(), "b", 100, Clock())
    assert all(t.valid for t in trajectories)
    for t in trajectories:
        if t.end is End.LEFT:
            assert t.turns[-1].act in ("leave", "thank")
            replies = sum(turn.source == "user" for turn in t.turns)
            said = [turn.text for turn in t.turns if turn.source == "user"][-3:]
            if t.turns[-1].act == "leave":
                assert replies > 12 or len(set(said)) == 1


def test_the_static_user_has_no_words() -> None:
    reply = answer(conversation("what is your email ?"), view(CANCEL), user=StaticUser())
    assert (reply.text, reply.act, reply.leaves) == ("", "none", False)


def test_a_long_conversation_is_no_slower_by_much() -> None:
    texts = [word for number in range(19) for word in (f"your email {number} ?", "i wait")]
    history = conversation(*texts, "what is your email ?")
    start = time.perf_counter()
    for seed in range(50):
        answer(history, view(CANCEL, REDIRECT, seed=seed), Profile("p", 50, 1, 0, 0, 0, 0))
    assert (time.perf_counter() - start) / 50 < 0.02
