"""The gym `function`: rewards and ends by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from progrl.dialogue.tasks import Milestone
from progrl.environments.choices import ChoiceEnvironment
from progrl.environments.gyms.function import Function, numbers_in
from progrl.environments.gyms.rules import evaluate, rules
from tests.builders import make_task
from tests.environments.gym import do, gym

TASK = make_task(
    goal={"rule": "(a + b) * c", "result": 20},
    setup={"test": [2, 3, 4, 5]},
    milestones=(Milestone("solved", 1.0),),
)


def started() -> ChoiceEnvironment:
    environment = gym("function").environment()
    assert isinstance(environment, ChoiceEnvironment)
    environment.reset(TASK)
    return environment


@pytest.mark.parametrize(
    ("choice", "content", "observation", "reward", "done"),
    [
        ("action", "1 2 3 4", "result 9", 0.0, False),
        ("action", "[1, -2, 3, 4]", "result -3", 0.0, False),
        ("action", "a=1 b=2 c=3 d=4", "result 9", 0.0, False),
        ("action", "2 3 4 5", "error: the test case cannot be tried", 0.0, False),
        ("action", "2 3 4", "error: try four whole numbers from -1000 to 1000", 0.0, False),
        ("action", "1 2 3 4 5", "error: try four whole numbers from -1000 to 1000", 0.0, False),
        ("action", "1 2 3 0.5", "error: try four whole numbers from -1000 to 1000", 0.0, False),
        ("action", "1 2 3 2000", "error: try four whole numbers from -1000 to 1000", 0.0, False),
        ("search", "anything", "test case 2 3 4 5", 0.0, False),
        ("answer", "20", "right", 1.0, True),
        ("answer", "it gives 20.0 !", "right", 1.0, True),
        ("answer", "21", "wrong", 0.0, False),
        ("answer", "20 or 21", "error: give one number", 0.0, False),
        ("answer", "twenty", "error: give one number", 0.0, False),
        ("answer", "9" * 400, "error: give one number", 0.0, False),
    ],
)
def test_the_table(choice: str, content: str, observation: str, reward: float, done: bool) -> None:
    environment = started()
    result = do(environment, choice, content)
    assert (result.observation, result.reward, result.done) == (observation, reward, done)
    assert result.failed == observation.startswith("error")
    assert environment.outcome().success == done


def test_a_wrong_result_may_be_mended() -> None:
    environment = started()
    assert do(environment, "answer", "21").reward == 0.0
    result = do(environment, "answer", "20")
    assert (result.reward, result.gain, result.milestones) == (1.0, 1.0, ("solved",))
    assert do(environment, "answer", "20").failed


@pytest.mark.parametrize(
    ("rule", "value"),
    [("a - b * c", -10), ("(a - b) / d", -0.2), ("max(a, d) - min(b, c)", 2), ("abs(a - b)", 1)],
)
def test_rules_by_hand(rule: str, value: float) -> None:
    assert evaluate(rule, (2, 3, 4, 5)) == pytest.approx(value)


@pytest.mark.parametrize(
    "rule",
    ["__import__('os')", "a.real", "a @ b", "e", "(lambda: a)()", "'a' * 3", "[a]", "True", "a +"],
)
def test_nothing_else_is_a_rule(rule: str) -> None:
    with pytest.raises(ValueError, match="rule"):
        evaluate(rule, (1, 2, 3, 4))


def test_harder_rules_are_of_larger_families() -> None:
    sizes = [len(rules(Function.kinds[level])) for level in (1, 2, 3, 5)]
    assert sizes == sorted(sizes)
    everything = [rule for family in Function.kinds.values() for rule in rules(family)]
    assert len(set(everything)) == len(everything)
    assert all(isinstance(evaluate(rule, (7, 2, 11, 5)), int) for rule in everything[::20])


@given(st.lists(st.integers(-1000, 1000), max_size=6), st.sampled_from([" ", ", ", " ; "]))
def test_numbers_are_read_back(numbers: list[int], between: str) -> None:
    assert numbers_in(f"try {between.join(map(str, numbers))} now") == numbers


def test_powers_are_of_usual_size() -> None:
    assert evaluate("a ** 2 + b ** c", (3, 2, 5, 1)) == 41
    assert evaluate("a / b", (2, 3, 1, 1)) == 0.666667
    for rule, numbers in [("a ** b ** c", (9, 9, 9, 9)), ("(a - b) ** (c / d)", (1, 2, 1, 2))]:
        with pytest.raises(ArithmeticError):
            evaluate(rule, numbers)
