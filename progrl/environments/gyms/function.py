"""The gym `function`: find a hidden rule of four numbers by trying inputs."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from math import isclose
from random import Random
from typing import ClassVar

from progrl.dialogue.messages import Action, Message, Say, ToolCall
from progrl.dialogue.tasks import Task
from progrl.dialogue.users import UserReply, UserView
from progrl.environments.choices import Choices, Use
from progrl.environments.contracts import State, StepResult
from progrl.environments.gyms.base import Draft, Gym, GymEnvironment
from progrl.environments.gyms.rules import Numbers, Value, evaluate, rules
from progrl.environments.service.tools import spec

TRY, SHOW, ANSWER = "try_numbers", "show_test", "give_result"
LARGEST = 1000
_NEAR = 1e-4
"""How near a result has to be; whole ones are exact, for no two are nearer."""
PROBES: tuple[Numbers, ...] = (
    (3, 17, 101, 997),
    (997, 101, 17, 3),
    (17, 997, 3, 101),
    (101, 3, 997, 17),
    (2, 3, 4, 5),
    (3, 2, 5, 1),
)
"""What the expert tries: numbers so far apart that few rules agree on them, then small ones."""

_NUMBER = re.compile(r"(?<![\w.])-?[0-9]{1,15}(?:\.[0-9]{1,9})?(?!\w|\.\d)")
_QUERIES = (
    "i have a rule for four numbers . find it out , then tell me what it gives for my test case",
    "guess my rule : it makes one number of four . what does it give for the test case ?",
    "there is a rule that turns four numbers into one . try some , then solve the test case",
    "can you find my secret rule for four numbers ? tell me its result for the test case",
    "hi , i use a rule on four numbers . work it out and give me the result of the test case",
)


def numbers_in(text: str) -> list[Value]:
    """The numbers of a text, in order; fractions as float."""
    found = [float(n) if "." in n else int(n) for n in _NUMBER.findall(text)]
    return [int(n) if n == int(n) else n for n in found]


class FunctionEnvironment(GymEnvironment):
    """The rule. For experts: `trials`, `barren` (without a value), `wrong`, `shown`, `rule`."""

    def begin(self, task: Task) -> None:
        """Hide the rule."""
        self.rule: str = task.goal["rule"]
        self._result: Value = task.goal["result"]
        self.test: Numbers = tuple(task.setup["test"])
        self.trials: dict[Numbers, Value] = {}
        self.barren: set[Numbers] = set()
        self.wrong: set[Value] = set()
        self.shown = False

    def call(self, tool: str, content: str) -> StepResult:
        """Try numbers, show the test case, or judge a result."""
        if tool == TRY:
            return self._try(content)
        if tool == SHOW:
            self.shown = True
            return self.result(f"test case {' '.join(map(str, self.test))}")
        given = numbers_in(content)
        if len(given) != 1:
            return self.error("give one number")
        right = isclose(given[0], self._result, rel_tol=0, abs_tol=_NEAR)
        if right:
            return self.result("right", 1.0, ["solved"])
        self.wrong.add(given[0])
        return self.result("wrong")

    def _try(self, content: str) -> StepResult:
        given = tuple(n for n in numbers_in(content) if isinstance(n, int) and abs(n) <= LARGEST)
        if len(given) != 4 or len(numbers_in(content)) != 4:
            return self.error(f"try four whole numbers from -{LARGEST} to {LARGEST}")
        if given == self.test:
            return self.error("the test case cannot be tried")
        try:
            value = evaluate(self.rule, given)
        except ArithmeticError:
            self.barren.add(given)
            return self.error("the rule has no value for these")
        self.trials[given] = value
        return self.result(f"result {value}")


@cache
def _known() -> Mapping[Value, Sequence[str]]:
    """All rules that are drawn, by what they give for the first of `PROBES`."""
    index: defaultdict[Value, list[str]] = defaultdict(list)
    for family in Function.kinds.values():
        for rule in rules(family):
            index[evaluate(rule, PROBES[0])].append(rule)
    return dict(index)


class FunctionExpert:
    """Tries `PROBES` until all rules that fit what was seen agree on the test case."""

    def next_action(self, state: State) -> Action:
        """Look at the test case, try numbers, give the result.

        Raises:
            EnvironmentFault: the episode is not one of this gym.
        """
        environment = state.played_in(FunctionEnvironment)
        if not environment.shown:
            return ToolCall(SHOW)
        seen = environment.trials
        if PROBES[0] in seen:
            fitting = [
                rule
                for rule in _known().get(seen[PROBES[0]], ())
                if all(evaluate(rule, tried) == value for tried, value in seen.items())
            ]
            results = {evaluate(rule, environment.test) for rule in fitting} - environment.wrong
            if len(results) == 1:
                return ToolCall(ANSWER, {"value": str(results.pop())})
        for probe in PROBES:
            if probe not in seen and probe not in environment.barren:
                return ToolCall(TRY, {"numbers": " ".join(map(str, probe))})
        if not seen:
            return Say("i do not know", closing=True)
        # None of the rules that we draw: an imported one, which so many trials leave in no doubt.
        return ToolCall(ANSWER, {"value": str(evaluate(environment.rule, environment.test))})


class Function(Gym):
    """Hidden arithmetic rules."""

    name = "function"
    description = "A hidden rule of four numbers, to be found by trying inputs."
    policy = (
        "Find the hidden rule of four numbers by trying inputs. Look at the test case, which "
        "cannot be tried itself, and give the rule's result for it.\n"
    )
    tools = (
        spec(TRY, "See what the rule gives.", {"numbers": "four whole numbers"}),
        spec(SHOW, "See the test case.", {}),
        spec(ANSWER, "Give the result for the test case.", {"value": "a number"}),
    )
    choices: ClassVar[Choices] = {
        "action": Use(TRY, "numbers"),
        "search": Use(SHOW),
        "answer": Use(ANSWER, "value"),
    }
    kinds: ClassVar[Mapping[int, str]] = {
        1: "pair",
        2: "triple",
        3: "four",
        4: "extreme",
        5: "constant",
    }

    def draft(self, random: Random, level: int) -> Draft:
        """A rule of the level's family, and numbers to test it on."""
        family = self.kinds[level]
        rule = random.choice(rules(family))
        test = [random.randrange(1, 21) for _ in range(4)]
        goal = {"rule": rule, "result": evaluate(rule, test)}
        return Draft(family, random.choice(_QUERIES), goal, {"test": test})

    def environment(self) -> FunctionEnvironment:
        """A fresh environment."""
        return FunctionEnvironment(self.tools)

    def expert(self) -> FunctionExpert:
        """The expert."""
        return FunctionExpert()

    def answer(self, history: Sequence[Message], view: UserView, random: Random) -> UserReply:
        """Who has a secret rule tells nothing about it."""
        return UserReply("i do not tell . try four numbers", "unknown")
