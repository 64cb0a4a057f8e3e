"""BFCL v3 multi-turn: tools of eight simulated systems, users with fixed lines (`bfcl-eval`).

Episodes call the package's classes directly, never through its `eval` of call strings. The verdict
is the package's own: it replays the calls, here written from names and literals alone, and compares
states and answers with those of the gold calls after each of the user's lines.
"""

import ast
import copy
import decimal
import inspect
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from progrl.benchmarks.base import Game, GoldExpert, Silent, bounded, task
from progrl.benchmarks.isolated import enable
from progrl.dialogue.chat import signature
from progrl.dialogue.messages import Message, Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Split, Task
from progrl.dialogue.users import Fact, UserReply, UserView
from progrl.environments.contracts import StepResult
from progrl.errors import DataError, EnvironmentFault, MalformedAction, ProgrlError
from progrl.expressions import parsed
from progrl.files import read_jsonl

NAME = "bfcl_v3_multi_turn"
CATEGORIES = ("base", "miss_param", "miss_func", "long_context")
MOST_CALLS = 40
"""After one of the user's lines. The benchmark stops after 20 messages, which may hold several
calls each, as gold ones do, 34 at most; here a message is one call."""
MORE_TOOLS = "I have updated some more functions you can choose from. What about now?"
_KINDS = {"dict": "object", "float": "number", "tuple": "array", "any": ""}
_PACKAGE = "bfcl_eval.eval_checker.multi_turn_eval"
_STATELESS = {"MathAPI"}
_LARGEST_POWER = 10**6  # bits
_MOST_DIGITS = 1000
_runs = count()


@cache
def _data() -> Path:
    enable(NAME)
    spec = find_spec("bfcl_eval")
    if spec is None or spec.origin is None:
        raise DataError(f"bfcl_eval is not installed: progrl benchmarks install {NAME}")
    return Path(spec.origin).parent / "data"


@cache
def _entries(category: str) -> dict[str, dict[str, Any]]:
    """The tasks of a category by their id, each with its gold calls as `ground_truth`."""
    name = f"BFCL_v4_multi_turn_{category}.json"
    entries = {row["id"]: row for _, row in read_jsonl(_data() / name)}
    for _, row in read_jsonl(_data() / "possible_answer" / name):
        entries[row["id"]]["ground_truth"] = row["ground_truth"]
    return entries


@cache
def _tools_of(system: str) -> tuple[ToolSpec, ...]:
    """The tools of a simulated system, their schemas made JSON schemas."""
    config: Any = import_module("bfcl_eval.constants.executable_backend_config")
    path = _data() / "multi_turn_func_doc" / config.MULTI_TURN_FUNC_DOC_FILE_MAPPING[system]
    return tuple(
        ToolSpec(
            row["name"],
            row["description"],
            {**_schema(row["parameters"]), "additionalProperties": False},
        )
        for _, row in read_jsonl(path)
    )


def _schema(written: Mapping[str, Any]) -> dict[str, Any]:
    """The benchmark's schema as a JSON schema: its names of types are Python's."""
    schema = {key: written[key] for key in ("description", "enum", "default") if key in written}
    kind = _KINDS.get(written.get("type", ""), written.get("type", ""))
    if kind:
        schema["type"] = kind
    if "items" in written:
        schema["items"] = _schema(written["items"])
    if "properties" in written:
        named = written["properties"].items()
        schema["properties"] = {name: _schema(each) for name, each in named}
        schema["required"] = list(written.get("required", ()))
    elif kind == "object":
        schema["type"] = "object"
    return schema


def _more(entry: Mapping[str, Any], number: int) -> str:
    """The line that brings the tools that were withheld; it describes them, as the first did."""
    withheld = entry["missed_function"][str(number)]
    every = [spec for system in entry["involved_classes"] for spec in _tools_of(system)]
    told = [signature(spec) for spec in every if spec.name in withheld]
    return "\n".join([*told, MORE_TOOLS])


def _class(system: str) -> Any:
    config: Any = import_module("bfcl_eval.constants.executable_backend_config")
    return getattr(import_module(config.CLASS_FILE_PATH_MAPPING[system]), system)


def _call(written: str, systems: Sequence[str]) -> ToolCall:
    """A gold call from its Python text."""
    node: Any = parsed(written)
    name = ast.unparse(node.func)
    method = next(getattr(_class(s), name) for s in systems if hasattr(_class(s), name))
    names = [key for key in inspect.signature(method).parameters if key != "self"]
    arguments = dict(zip(names, map(ast.literal_eval, node.args), strict=False))
    arguments |= {each.arg: ast.literal_eval(each.value) for each in node.keywords}
    return ToolCall(name, arguments)


def _too_large(call: ToolCall) -> bool:
    """Numbers whose result would take for ever, in code that nothing can stop."""
    given = call.arguments
    if call.name == "power":
        base, exponent = given.get("base"), given.get("exponent")
        if isinstance(base, int) and isinstance(exponent, int):
            return base.bit_length() * abs(exponent) > _LARGEST_POWER
    digits = given.get("precision", 0)
    return isinstance(digits, int | float) and abs(digits) > _MOST_DIGITS


class BfclEnvironment(Game):
    """One episode: the systems of the task, and what was called after each of the user's lines."""

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """Fresh systems in the task's first state."""
        entry = _entries(task.family)[task.setup["entry"]]
        self._entry, self._long = entry, task.family == "long_context"
        self._systems = [self._loaded(name) for name in entry["involved_classes"]]
        withheld = {name for names in entry.get("missed_function", {}).values() for name in names}
        self._hidden = withheld | set(entry.get("excluded_function", ()))
        every = [spec for name in entry["involved_classes"] for spec in _tools_of(name)]
        # A call of a tool that is not offered runs all the same, as in the benchmark: the gold
        # calls of miss_func_49 have one.
        self._tools = {spec.name: spec for spec in every}
        self._called: list[list[list[str]]] = [[]]
        self._solved = self._ended = False
        return self._offered()

    def _loaded(self, name: str) -> Any:
        system = _class(name)()
        if name not in _STATELESS:
            config = copy.deepcopy(self._entry["initial_config"].get(name, {}))
            system._load_scenario(config, long_context=self._long)
        return system

    def _offered(self) -> tuple[ToolSpec, ...]:
        return tuple(spec for name, spec in self._tools.items() if name not in self._hidden)

    def _say(self, words: Say) -> StepResult:
        """Words end what is done about the user's line."""
        last = len(self._called) == len(self._entry["question"])
        if last or words.closing:
            return self._end()
        self._called.append([])
        return StepResult()

    def _end(self) -> StepResult:
        self._ended, self._solved = True, self._judged()
        return StepResult("", 0.0, ("solved",) * self._solved, float(self._solved), True)

    def _call(self, call: ToolCall) -> StepResult:
        if len(self._called[-1]) >= MOST_CALLS:
            self._ended = True
            return StepResult("error: too many calls", done=True, failed=True)
        try:
            known = self._known(call)
        except MalformedAction as error:
            return StepResult(f"error: {error}", failed=True)
        self._called[-1].append([known])
        system = next(s for s in self._systems if hasattr(s, call.name))
        try:
            with _own_precision(), bounded(f"{NAME}: {call.name}"):
                found = getattr(system, call.name)(**copy.deepcopy(dict(call.arguments)))
        except ProgrlError:
            raise
        except Exception as error:  # the benchmark shows any error of its tools to the agent
            return StepResult(f"Error during execution: {error}", failed=True)
        failed = isinstance(found, dict) and "error" in found
        return StepResult(_written(found), failed=failed)

    def _known(self, call: ToolCall) -> str:
        """The call as the checker reads it; only names of the tool's, and literals, get in."""
        spec = self._tools.get(call.name)
        if spec is None:
            raise MalformedAction(f"unknown tool {call.name}")
        strange = sorted(set(call.arguments) - set(spec.parameters.get("properties", {})))
        if strange:
            raise MalformedAction(f"{call.name}: unknown argument {strange[0]}")
        if _too_large(call):
            raise MalformedAction(f"{call.name}: numbers too large")
        return f"{call.name}({', '.join(f'{k}={v!r}' for k, v in call.arguments.items())})"

    def hear(self, reply: UserReply) -> StepResult:
        """The user's next line, which may bring the tools that were withheld."""
        more = self._entry.get("missed_function", {}).get(str(len(self._called) - 1))
        if not more:
            return StepResult()
        self._hidden -= set(more)
        return StepResult(tools=self._offered())

    def _judged(self) -> bool:
        """The package's checker on all that was called."""
        entry, gold = self._entry, self._entry["ground_truth"]
        called = self._called + [[]] * (len(gold) - len(self._called))
        checker: Any = import_module(f"{_PACKAGE}.multi_turn_checker")
        name = f"progrl{next(_runs)}x"
        try:
            with _own_precision(), bounded(f"{NAME}: the checker"):
                found = checker.multi_turn_checker(called, gold, entry, "", name)
        except AssertionError as error:
            raise EnvironmentFault(
                f"{NAME}: the checker failed on {entry['id']}: {error}"
            ) from None
        finally:
            executor = vars(import_module(f"{_PACKAGE}.multi_turn_utils"))
            for key in [key for key in executor if key.startswith(name)]:
                del executor[key]
        return bool(found["valid"])


class _own_precision:
    """The package sets the precision of decimal and mpmath for the whole process: set it back."""

    def __enter__(self) -> None:
        self._mp: Any = import_module("mpmath").mp
        self._digits = self._mp.dps
        self._decimal = decimal.getcontext().copy()

    def __exit__(self, *_: object) -> None:
        self._mp.dps = self._digits
        decimal.setcontext(self._decimal)


def _written(found: Any) -> str:
    """A tool's result as the benchmark shows it."""
    if isinstance(found, str):
        return found
    if isinstance(found, dict):
        try:
            return json.dumps(found)
        except TypeError:
            return str(found)
    return str(found)


class Bfcl(Silent):
    """All four categories in turn: 800 tasks."""

    name = NAME
    description = "Eight simulated systems; users who ask for several things, one after the other."
    policy = (
        "Do with the tools what the user asks for, one call a message, until nothing more can be "
        "done about the user's last message; then say so in words. If a tool or a value that is "
        "needed is missing, say which, and call nothing.\n"
    )
    tools: tuple[ToolSpec, ...] = ()

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """The package's tasks, the categories in turn; the same for every split and seed."""
        tables = [list(_entries(category).values()) for category in CATEGORIES]
        for row in zip(*tables, strict=True):
            for level, entry in enumerate(row, start=1):
                yield self._task(CATEGORIES[level - 1], level, entry)

    def _task(self, category: str, level: int, entry: Mapping[str, Any]) -> Task:
        gold: list[dict[str, Any]] = []
        for written in entry["ground_truth"]:
            for text in written:
                call = _call(text, entry["involved_classes"])
                gold.append({"call": call.name, "arguments": dict(call.arguments)})
            gold.append({"say": "done"})
        lines = [
            turn[0]["content"] if turn else _more(entry, number)
            for number, turn in enumerate(entry["question"])
        ]
        setup = {"entry": entry["id"]}
        return task(
            NAME, category, level, lines[0], {"gold": gold, "lines": lines}, setup, len(gold)
        )

    def user_view(self, task: Task) -> UserView:
        """The user's lines in their order."""
        lines = task.goal["lines"]
        facts = tuple(Fact(f"line_{n}", text, ()) for n, text in enumerate(lines))
        return UserView(NAME, task.query, facts, (), task.seed)

    def answer(self, history: Sequence[Message], view: UserView, random: Random) -> UserReply:
        """The user's next line, whatever was said."""
        number = sum(message.role == "user" for message in history)
        return UserReply(view.facts[number].value, "inform")

    def turns(self, task: Task) -> int:
        """All calls that the benchmark allows, and a message a line."""
        return (MOST_CALLS + 2) * len(task.goal["lines"])

    def environment(self) -> BfclEnvironment:
        """A fresh environment."""
        return BfclEnvironment()

    def expert(self) -> GoldExpert:
        """Plays the gold calls."""
        return GoldExpert()
