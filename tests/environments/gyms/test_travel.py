"""The gym `travel`: rewards, ends and what the user tells, by hand."""

from collections import Counter

import pytest

from progrl.agent.seats import ExpertAgent
from progrl.dialogue.messages import Message, Say
from progrl.dialogue.tasks import Milestone, Task
from progrl.dialogue.users import UserReply
from progrl.environments.choices import ChoiceEnvironment
from progrl.environments.gyms.travel import Travel
from progrl.environments.gyms.trips import (
    DIMENSIONS,
    NOUNS,
    Told,
    aspects_in,
    conversation,
    dimensions_in,
    values_in,
)
from progrl.rewards import turn_rewards
from progrl.seeds import Seed
from tests.builders import make_task
from tests.environments.gym import do, episodes, gym, stream
from tests.rewards.test_structured import CONFIG

WANTED = {"flight": {"departure": "morning", "seat": "aisle"}, "car": {"fuel": "petrol"}}
PLANE = {"departure": "morning", "stops": "nonstop", "cabin": "economy", "seat": "aisle"}
CAR = {"size": "van", "fuel": "petrol", "gears": "manual", "cover": "full"}
FLIGHTS = {
    "f11": {**PLANE, "price": "90"},
    "f12": {**PLANE, "price": "70"},
    "f13": {**PLANE, "seat": "window", "price": "50"},
    "f14": {**PLANE, "departure": "noon", "price": "40"},
}
CARS = {"c21": {**CAR, "price": "30"}, "c22": {**CAR, "fuel": "diesel", "price": "20"}}
STEPS = ("heard flight departure", "heard flight seat", "searched flight", "found flight")
STEPS += ("heard car fuel", "searched car", "found car", "spare")


def task(**changes: object) -> Task:
    return make_task(
        query="i plan a trip and need a flight with 2 wishes and a car with 1 wish",
        goal={
            "wanted": WANTED,
            "fitting": {"flight": ["f12", "f11"], "car": ["c21"]},
            "best": {"flight": "f12", "car": "c21"},
        },
        setup={"options": {"flight": FLIGHTS, "car": CARS}},
        milestones=tuple(Milestone(step, 1 / 8) for step in STEPS),
        **changes,
    )


def started(**options: object) -> ChoiceEnvironment:
    environment = gym("travel", **options).environment()
    assert isinstance(environment, ChoiceEnvironment)
    environment.reset(task())
    return environment


@pytest.mark.parametrize(
    ("choice", "content", "reward", "published"),
    [
        ("action", "when do you want to leave ?", 0.2, 0.8),
        ("action", "which seat and what time for the flight ?", 0.2, 0.8),
        ("action", "which fuel ?", 0.2, 0.8),
        ("action", "direct flight ?", 0.0, 0.0),
        ("action", "tell me all your wishes", 0.0, 0.0),
        ("action", "what seat in the car ?", 0.0, 0.0),
        ("search", "flight morning aisle", 0.2, 0.0),
        ("search", "a morning plane , on the aisle please", 0.2, 0.0),
        ("search", "flight morning", 0.0, 0.0),
        ("search", "flight morning aisle nonstop", 0.0, 0.0),
        ("search", "flight morning noon aisle", 0.0, 0.0),
        ("search", "morning aisle", 0.0, 0.0),
        ("search", "flight and car morning aisle", 0.0, 0.0),
        ("search", "hotel", 0.0, 0.0),
        ("answer", "f12", 1.0, 1.0),
        ("answer", "take F12 .", 1.0, 1.0),
        ("answer", "f11", 0.8, 0.8),
        ("answer", "f13", 0.0, 0.0),
        ("answer", "c21", 1.0, 1.0),
        ("answer", "f99", 0.0, 0.0),
        ("answer", "f11 or f12", 0.0, 0.0),
        ("answer", "the cheapest", 0.0, 0.0),
    ],
)
def test_the_table(choice: str, content: str, reward: float, published: float) -> None:
    for options, wanted in (({}, reward), ({"published": True}, published)):
        result = do(started(**options), choice, content)
        assert (result.reward, result.done) == (wanted, False), result


def test_nothing_is_paid_twice() -> None:
    environment = started()
    for choice, content, first in (
        ("action", "which seat ?", 0.2),
        ("search", "flight morning aisle", 0.2),
        ("answer", "f11", 0.8),
        ("answer", "f12", 1.0),
    ):
        assert do(environment, choice, content).reward == first
        again = do(environment, choice, content)
        assert again.reward == 0.0
        assert not again.done
    assert do(environment, "answer", "f11").observation == "error: the flight is settled"


def test_it_ends_with_the_best_of_everything() -> None:
    environment = started()
    assert not do(environment, "answer", "f12").done
    assert not environment.outcome().success
    assert environment.outcome().domain == 0.5
    assert do(environment, "answer", "c22").observation == "it does not fit"
    end = do(environment, "answer", "c21")
    assert end.done
    assert environment.outcome().success
    assert environment.outcome().domain == 1.0


@pytest.mark.parametrize(
    ("choices", "success", "score"),
    [(("f12", "c21"), True, 1.0), (("f11", "c21"), False, 0.9), (("f13", "c22"), False, 0.0)],
)
def test_with_one_choice_each_the_last_ends_it(
    choices: tuple[str, str], success: bool, score: float
) -> None:
    environment = started(one_choice=True)
    assert not do(environment, "answer", choices[0]).done
    assert do(environment, "answer", "f12").failed
    assert do(environment, "answer", choices[1]).done
    assert environment.outcome().success == success
    assert environment.outcome().domain == pytest.approx(score)
    assert do(environment, "answer", choices[1]).failed


def test_every_fifth_search_fails_whatever_it_asks() -> None:
    environment = started()
    failed = [do(environment, "search", "flight morning").failed for _ in range(4)]
    fifth = do(environment, "search", "flight morning aisle")
    assert failed == [False] * 4
    assert fifth.failed
    assert fifth.reward == 0.0
    assert "try again" in fifth.observation
    assert do(environment, "search", "flight morning aisle").reward == 0.2
    assert [do(environment, "search", "car").failed for _ in range(4)] == [False] * 3 + [True]


def test_a_search_shows_what_has_all_that_is_named() -> None:
    shown = do(started(), "search", "flight aisle morning").observation
    assert shown.split(" ; ") == [
        "f11 morning nonstop economy aisle 90",
        "f12 morning nonstop economy aisle 70",
    ]
    assert do(started(), "search", "flight evening").observation == "nothing found"


def test_what_the_user_tells() -> None:
    asked = [
        "what time for the flight ?",
        "what time for the flight ?",
        "do you want a direct flight ?",
        "so ?",
        "and the seat ?",
        "hm",
    ]
    assert conversation(WANTED, asked) == [
        Told("asked", "flight", "departure"),
        Told("again", "flight", "departure"),
        Told("indifferent"),
        Told("volunteered", "flight", "seat"),
        Told("again", "flight", "seat"),
        Told("vague"),
    ]
    assert conversation(WANTED, ["hm"] * 12)[2::3] == [
        Told("volunteered", "flight", "departure"),
        Told("volunteered", "flight", "seat"),
        Told("volunteered", "car", "fuel"),
        Told("vague"),
    ]


def test_what_is_volunteered_is_heard_but_not_paid() -> None:
    environment, travel = started(), Travel()
    view, history, earned = travel.user_view(task()), [Message("user", "hi")], 0.0
    for _ in range(3):
        earned += environment.step(Say("hm")).reward
        history.append(Message("assistant", "hm"))
        reply = travel.answer(history, view, Seed("a").random())
        history.append(Message("user", reply.text))
        heard = environment.hear(reply)
    assert earned == 0.0
    assert "by the way" in reply.text
    assert "morning" in reply.text
    assert heard.milestones == ("heard flight departure",)
    assert do(environment, "action", "when do you leave ?").reward == 0.0
    assert environment.hear(UserReply("bye", "leave", leaves=True)).milestones == ()
    assert do(environment, "answer", "f12").failed


@pytest.mark.parametrize(("published", "asked", "searched"), [(False, 0.2, 0.2), (True, 0.8, 0.0)])
def test_what_the_expert_earns(published: bool, asked: float, searched: float) -> None:
    played = gym("travel", published=published)
    tasks = stream(played, 50)
    for made, trajectory in zip(tasks, episodes(played, ExpertAgent(), tasks), strict=True):
        booked = len(made.goal["wanted"])
        wishes = sum(map(len, made.goal["wanted"].values()))
        assert sum(turn_rewards(trajectory, CONFIG)) == pytest.approx(
            wishes * asked + booked * (searched + 1.0)
        )
        assert len(trajectory.turns) == made.expert_turns == wishes + 2 * booked


def test_words_are_about_one_thing() -> None:
    aspects = [aspect for own in DIMENSIONS.values() for aspect in own]
    values = Counter(value for aspect in aspects for value in aspect.values)
    assert max(values.values()) == 1
    for value in values:
        assert not dimensions_in(value)
        own = {(n, a.name) for n, part in DIMENSIONS.items() for a in part if value in a.values}
        assert {(n, name) for n in DIMENSIONS for name in aspects_in(value, n)} <= own
        assert sum(len(values_in(value, name)) for name in DIMENSIONS) == 1
    for name, own in DIMENSIONS.items():
        assert all(dimensions_in(noun) == (name,) for noun in NOUNS[name])
        for aspect in own:
            for cue in aspect.cues:
                assert aspects_in(f"{cue} ?", name) == (aspect.name,)


def test_the_cheapest_of_all_never_fits() -> None:
    for made in stream(Travel(), 60):
        for name, options in made.setup["options"].items():
            assert len(options) == 8
            assert len(made.goal["fitting"][name]) == 3
            cheapest = min(options, key=lambda key: int(options[key]["price"]))
            assert cheapest not in made.goal["fitting"][name]
