"""ToolBench on a StableToolBench server: its queries, and calls that the server answers.

`STABLETOOLBENCH` names a checkout, which has the 765 solvable queries with the interfaces that they
are about; `STABLETOOLBENCH_SERVER` the address at which its server runs (`.../virtual`), and
`TOOLBENCH_KEY` the key for it, where it wants one. The benchmark's own verdict, the solvable pass
rate, is a language model's opinion. Here an episode succeeds if all interfaces that the query's
authors have marked as relevant were called without an error, and an answer was given at the end.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from progrl.benchmarks.base import GoldExpert, Silent, check_call, task
from progrl.dialogue.messages import Action, Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Milestone, Split, Task
from progrl.dialogue.trajectories import Outcome
from progrl.dialogue.users import UserReply
from progrl.environments.contracts import StepResult
from progrl.errors import ConfigurationError, DataError, EnvironmentFault, MalformedAction

CHECKOUT, SERVER, KEY = "STABLETOOLBENCH", "STABLETOOLBENCH_SERVER", "TOOLBENCH_KEY"
QUERIES = Path("solvable_queries") / "test_instruction"
GROUPS = {
    "G1_instruction": 1,
    "G1_tool": 1,
    "G1_category": 1,
    "G2_instruction": 3,
    "G2_category": 3,
    "G3_instruction": 5,
}
"""Of queries, with our complexity: one tool, several of a category, several of a collection."""
TURNS = 12
"""Of the agent, as the benchmark's own chain of thought has them."""
SECONDS = 60.0
"""Wall time that the server may take to answer; it may have to ask a language model."""
LONGEST = 1024
"""Characters of an answer that the agent reads, as in the benchmark's runs."""
PARTS = (Milestone("relevant", 0.5), Milestone("answered", 0.5))
FINISH = ToolSpec(
    "Finish",
    "End the task: give the final answer for the user, or give up.",
    {
        "type": "object",
        "properties": {
            "return_type": {"enum": ["give_answer", "give_up_and_restart"]},
            "final_answer": {"type": "string", "description": "where an answer is given"},
        },
        "required": ["return_type"],
        "additionalProperties": False,
    },
)
_TYPES = {"NUMBER": "number", "BOOLEAN": "boolean"}
_RESERVED = ("from", "class", "return", "false", "true", "id", "and")


def standard(name: str) -> str:
    """A name as the server knows it: lower case, with underscores, no Python word."""
    plain = re.sub(r"_+", "_", re.sub(r"[^\u4e00-\u9fa5^a-zA-Z0-9_]", "_", name)).lower().strip("_")
    if plain[:1].isdigit():
        plain = f"get_{plain}"
    return f"is_{plain}" if plain in _RESERVED else plain


class Interface:
    """One interface of a query: as the agent calls it, and as the server is asked."""

    def __init__(self, written: Mapping[str, Any]) -> None:
        self.category: str = written["category_name"]
        self.tool, self.name = standard(written["tool_name"]), standard(written["api_name"])
        self.key = (written["tool_name"], written["api_name"])
        required, optional = written["required_parameters"], written["optional_parameters"]
        self.defaults = {standard(each["name"]): _default(each) for each in required}
        properties = {standard(each["name"]): _schema(each) for each in (*required, *optional)}
        parameters = {
            "type": "object",
            "properties": properties,
            "required": list(self.defaults),
            "additionalProperties": False,
        }
        said = " ".join(str(written.get("api_description") or "").split())[:256]
        self.spec = ToolSpec(f"{self.name}_for_{self.tool}"[-64:], said or "No words.", parameters)


def _schema(parameter: Mapping[str, Any]) -> dict[str, Any]:
    said = str(parameter.get("description") or "")[:256]
    default = str(parameter.get("default") or "")
    told = "; ".join(filter(None, [said, f"for example {default[:80]}" if default else ""]))
    return {"type": _TYPES.get(parameter["type"], "string"), "description": told}


def _default(parameter: Mapping[str, Any]) -> Any:
    """The example of a parameter that must be given, of its type."""
    value = parameter.get("default")
    kind = _TYPES.get(parameter["type"], "string")
    if kind == "boolean":
        return str(value).lower() == "true"
    if kind == "number":
        try:
            return float(str(value)) if "." in str(value) else int(str(value))
        except ValueError:
            return 0
    return "" if value is None else str(value)


class ToolBenchEnvironment:
    """One episode: the server answers the calls of a query's interfaces."""

    reward_bounds = (0.0, 0.0)

    def __init__(self, address: str) -> None:
        self._address = address

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        """Nothing has been called."""
        self._interfaces = {
            made.spec.name: made for made in map(Interface, task.setup["interfaces"])
        }
        self._open = {tuple(key) for key in task.goal["relevant"]}
        self._tools = (*(made.spec for made in self._interfaces.values()), FINISH)
        self._reached: list[str] = []
        self._ended = False
        return self._tools

    def step(self, action: Action) -> StepResult:
        """Ask the server, or end; words change nothing."""
        if self._ended:
            return StepResult("error: the task has ended", failed=True)
        if isinstance(action, Say):
            return StepResult()
        try:
            check_call(action, self._tools)
        except MalformedAction as error:
            return StepResult(f"error: {error}", failed=True)
        if action.name == FINISH.name:
            return self._finish(action)
        made = self._interfaces[action.name]
        failure, said = self._asked(made, action.arguments)
        if not failure:
            self._open.discard(made.key)
        met = "relevant" if not self._open and "relevant" not in self._reached else ""
        return self._result(said, met, failed=bool(failure))

    def _finish(self, call: ToolCall) -> StepResult:
        self._ended = True
        gave = call.arguments["return_type"] == "give_answer"
        answer = str(call.arguments.get("final_answer", "")).strip()
        return self._result("the task has ended", "answered" if gave and answer else "")

    def _result(self, said: str, met: str, failed: bool = False) -> StepResult:
        reached = (met,) if met else ()
        self._reached += reached
        return StepResult(said, 0.0, reached, 0.5 * len(reached), self._ended, failed)

    def _asked(self, made: Interface, arguments: Mapping[str, Any]) -> tuple[str, str]:
        """What went wrong, "" where nothing did, and what the agent reads.

        Raises:
            EnvironmentFault: the server does not answer, or not in its form.
        """
        asked = {
            "category": made.category,
            "tool_name": made.tool,
            "api_name": made.name,
            "tool_input": json.dumps(arguments),
            "strip": "truncate",
            "toolbench_key": os.environ.get(KEY, ""),
        }
        kind = {"Content-Type": "application/json"}
        request = Request(self._address, json.dumps(asked).encode(), kind)
        try:
            with urlopen(request, timeout=SECONDS) as reply:
                found = json.load(reply)
        except (OSError, ValueError) as error:
            raise EnvironmentFault(f"{SERVER}={self._address}: no answer ({error})") from None
        if not isinstance(found, dict) or not {"error", "response"} <= found.keys():
            raise EnvironmentFault(f"{SERVER}={self._address}: an answer of another form")
        said = json.dumps(found, ensure_ascii=False)
        return str(found["error"]), said if len(said) <= LONGEST else f"{said[:LONGEST]}..."

    def hear(self, reply: UserReply) -> StepResult:
        """Nobody speaks."""
        return StepResult()

    def outcome(self) -> Outcome:
        """Whether the relevant interfaces were called and an answer was given."""
        share = len(self._reached) / len(PARTS)
        return Outcome(share == 1.0, share, tuple(self._reached), True, share)


class ToolBench(Silent):
    """The solvable queries, from a checkout, on a server that runs elsewhere.

    Raises:
        ConfigurationError: the environment names no server.
        DataError: the checkout is not whole.
    """

    name = "toolbench"
    description = "Answer questions by interfaces of the web, which a server plays."
    policy = (
        "Answer the user by calls of the tools. End with Finish: its final answer is all that the "
        "user sees, so it must have all that was asked for.\n"
    )
    tools = (FINISH,)

    def __init__(self) -> None:
        self._address = os.environ.get(SERVER, "")
        if not re.match(r"https?://[^/]+", self._address):
            raise ConfigurationError(
                f"The benchmark toolbench needs a StableToolBench server: name its address by "
                f"{SERVER}, as in http://127.0.0.1:8080/virtual."
            )
        folder = Path(os.environ.get(CHECKOUT, "")) / QUERIES
        rows = zip_longest(*(_queries(folder / f"{group}.json", group) for group in GROUPS))
        self._entries = [entry for entry in chain.from_iterable(rows) if entry is not None]

    def tasks(self, split: Split, seed: int) -> Iterator[Task]:
        """The groups in turn; the same for every split and seed."""
        return (self._task(group, entry) for group, entry in self._entries)

    def _task(self, group: str, entry: Mapping[str, Any]) -> Task:
        relevant = [list(pair) for pair in entry["relevant APIs"]]
        made = {each.key: each for each in map(Interface, entry["api_list"])}
        calls = [
            {"call": made[pair].spec.name, "arguments": made[pair].defaults}
            for pair in dict.fromkeys(map(tuple, relevant))
        ]
        answer = {"return_type": "give_answer", "final_answer": "as the tools have said"}
        gold = [*calls, {"call": FINISH.name, "arguments": answer}]
        made_of = task(
            self.name,
            group,
            GROUPS[group],
            entry["query"],
            {"gold": gold, "relevant": relevant},
            {"interfaces": entry["api_list"]},
            len(gold) + 1,
        )
        return replace(made_of, milestones=PARTS)

    def turns(self, task: Task) -> int:
        """As many as the benchmark's own agents have, or twice what the expert needs."""
        return max(TURNS, 2 * task.expert_turns)

    def environment(self) -> ToolBenchEnvironment:
        """A fresh environment."""
        return ToolBenchEnvironment(self._address)

    def expert(self) -> GoldExpert:
        """Calls what is relevant with the examples that its authors gave, and ends."""
        return GoldExpert()


def _queries(path: Path, group: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The queries of a group whose relevant interfaces are all described.

    Raises:
        DataError: the file is missing, or has another form.
    """
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        found = []
        for entry in entries:
            offered = {(each["tool_name"], each["api_name"]) for each in entry["api_list"]}
            if entry["relevant APIs"] and {tuple(p) for p in entry["relevant APIs"]} <= offered:
                found.append((group, entry))
        return found
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path}: not queries of StableToolBench ({error!r}).") from None
