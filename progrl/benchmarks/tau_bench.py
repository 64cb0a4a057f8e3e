"""tau-bench, the first: retail and airline, from a checkout that the variable TAU_BENCH names.

There is no package of it. Its environment applies the calls and gives the verdict: it plays the
gold actions on fresh data, compares the data, and looks for the outputs in what the agent said.
"""

import copy
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from progrl.benchmarks import base
from progrl.benchmarks.base import Game, GoldExpert, bounded
from progrl.benchmarks.customers import (
    INSTRUCTIONS,
    KNOWN,
    REASON,
    Customers,
    endless,
    first_person,
    sentences,
)
from progrl.dialogue.messages import Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Split, Task
from progrl.dialogue.users import UserReply, UserView
from progrl.environments.contracts import StepResult
from progrl.errors import DataError

VARIABLE = "TAU_BENCH"
TURNS = 30
"""Of the agent, as the benchmark's own agents have them."""
_IDENTITY = re.compile(r"You are [A-Z]|(?i:your (full name|name|user id|id|e-?mail|zip)\b)")
_WISH = re.compile(r"\b(want|wish|would like|need|hope|plan|try|call(ing)?)\b", re.I)
_STEPS = (1, 3, 6, 9)
_BRIEF = """\
You are a customer who talks to a support agent. Your part:
{scenario}

Answer the agent's last message in one short line, in your own words and your part's character.
Tell what is asked for and nothing beyond it; what your part does not say, you do not know. Once
your wish is met, or cannot be met, answer ###STOP### and nothing else.
"""


class _Absent:
    """The user of the benchmark's environment: here episodes have users of their own."""

    def reset(self, instruction: str | None = None) -> str:
        """No words."""
        return ""

    def step(self, content: str) -> str:
        """No words."""
        return ""

    def get_total_cost(self) -> float:
        """Nothing."""
        return 0.0


@cache
def _module(name: str) -> Any:
    """A module of the checkout.

    Its module of users imports `litellm`, which nothing here asks: where that is not installed, an
    empty module of this name stands in during the import.

    Raises:
        DataError: the checkout is not whole.
    """
    folder = os.environ.get(VARIABLE, "")
    if folder not in sys.path:
        sys.path.append(folder)
    absent = importlib.util.find_spec("litellm") is None
    if absent:
        sys.modules["litellm"] = _Empty("litellm")
    try:
        return import_module(f"tau_bench.{name}")
    except ImportError as error:
        raise DataError(f"{folder}: no whole checkout of tau-bench ({error}).") from None
    finally:
        if absent:
            del sys.modules["litellm"]


class _Empty(ModuleType):
    """Has all names, and nothing behind them."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


class TauBenchEnvironment(Game):
    """One episode in the benchmark's own environment."""

    def __init__(self, world: Any, tools: tuple[ToolSpec, ...]) -> None:
        self._world, self._tools = world, tools

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """Fresh data."""
        self._name, self._actions = task.domain, _module("types").Action
        self._world.reset(task.setup["index"])
        self._ended = self._solved = False
        return self._tools

    def _call(self, call: ToolCall) -> StepResult:
        if endless(call):
            return StepResult("Error: powers are not allowed", failed=True)
        arguments = copy.deepcopy(dict(call.arguments))
        with bounded(f"{self._name}: {call.name}"):
            found = self._world.step(self._actions(name=call.name, kwargs=arguments))
        failed = found.observation.startswith(("Error", "Unknown action"))
        if not found.done:
            return StepResult(found.observation, failed=failed)
        return self._end(found.reward, found.observation)

    def _say(self, words: Say) -> StepResult:
        """Closing words end the episode."""
        self._world.step(self._actions(name="respond", kwargs={"content": words.text}))
        return self._judged() if words.closing else StepResult()

    def hear(self, reply: UserReply) -> StepResult:
        """The episode ends as the user leaves."""
        return self._judged() if reply.leaves else StepResult()

    def _judged(self) -> StepResult:
        with bounded(f"{self._name}: the verdict"):
            return self._end(self._world.calculate_reward().reward)

    def _end(self, reward: float, observation: str = "") -> StepResult:
        self._ended, self._solved = True, reward == 1.0
        reached = ("solved",) * self._solved
        return StepResult(observation, 0.0, reached, float(self._solved), True)


class _TauBench(Customers):
    """One of the benchmark's domains."""

    domain: str

    def __init__(self) -> None:
        self.name = f"tau_bench_{self.domain}"
        world = self._world()
        self.policy: str = world.wiki
        self.tools = tuple(
            ToolSpec(each["name"], each["description"], each["parameters"])
            for each in (info["function"] for info in world.tools_info)
        )
        self._ending = set(world.terminate_tools)
        self._entries = list(world.tasks)

    def _world(self) -> Any:
        """A fresh environment of the benchmark's."""
        made = getattr(_module(f"envs.{self.domain}.env"), f"Mock{self.domain.title()}DomainEnv")
        # Without a number the environment draws one, which may be one beyond the last.
        first = {"task_index": 0} if "task_index" in inspect.signature(made).parameters else {}
        world = made(user_strategy="human", user_model="", task_split="test", **first)
        world.user = _Absent()
        return world

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """The tasks of its split `test`; the same for every split and seed."""
        return (self._task(index, entry) for index, entry in enumerate(self._entries))

    def _task(self, index: int, entry: Any) -> Task:
        calls = [each for each in entry.actions if each.name not in {"respond", *self._ending}]
        gold: list[dict[str, Any]] = [
            {"call": each.name, "arguments": each.kwargs} for each in calls
        ]
        if entry.outputs:
            gold.append({"say": " ; ".join(entry.outputs)})
        scenario = parts(entry.instruction)
        return base.task(
            self.name,
            self.domain,
            1 + sum(len(calls) > most for most in _STEPS),
            first_person(scenario[REASON]),
            {"gold": gold, "scenario": scenario},
            {"index": index},
            len(gold) + 1,
        )

    def brief(self, view: UserView) -> str:
        """The scenario, and how to play it."""
        return _BRIEF.format(scenario=" ".join(fact.value for fact in view.facts))

    def turns(self, task: Task) -> int:
        """As many as the benchmark's own agents have."""
        return TURNS

    def environment(self) -> TauBenchEnvironment:
        """A fresh environment."""
        return TauBenchEnvironment(self._world(), self.tools)

    def expert(self) -> GoldExpert:
        """Plays the gold actions."""
        return GoldExpert()


def parts(instruction: str) -> dict[str, str]:
    """Who the customer is, what it wants, and the rest, of an instruction in one piece."""
    every = sentences(instruction)
    known = [text for text in every if _IDENTITY.match(text)]
    others = [text for text in every if text not in known]
    reason = next((text for text in others if _WISH.search(text)), (others or every)[0])
    rest = [text for text in others if text != reason]
    return {REASON: reason, KNOWN: " ".join(known), INSTRUCTIONS: " ".join(rest)}


class TauBenchRetail(_TauBench):
    """A shop."""

    domain = "retail"
    description = "A shop's customers, who return, exchange and change what they ordered."


class TauBenchAirline(_TauBench):
    """An airline."""

    domain = "airline"
    description = "An airline's customers, who book, change and cancel flights."
