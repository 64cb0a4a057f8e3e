"""Customers with a scenario in free text, as tau-bench and tau2-bench have them, played by rule.

A scenario speaks to whoever plays the customer ("You want to return your order"). By rule it is
told in the first person, sentence by sentence, to what is asked; the rule cannot weigh what the
agent proposes, and agrees to it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Any, Protocol, runtime_checkable

from progrl.dialogue.acts import asks, asks_confirmation, normal, offers, reports
from progrl.dialogue.messages import Message, ToolCall, ToolSpec
from progrl.dialogue.tasks import Task
from progrl.dialogue.users import Fact, UserReply, UserView, Wish

REASON, KNOWN, INSTRUCTIONS, UNKNOWN = "reason", "known", "instructions", "unknown"
STUBBORN = 3
_LABELS = {
    REASON: "reason for the call",
    KNOWN: "known to you",
    INSTRUCTIONS: "how you act",
    UNKNOWN: "not known to you",
}
_TOLD = (KNOWN, REASON, INSTRUCTIONS, UNKNOWN)
_PERSON = [
    (re.compile(rf"\b{before}\b", re.IGNORECASE), after)
    for before, after in (
        ("you are", "I am"),
        ("you were", "I was"),
        ("you're", "I'm"),
        (r"you(?='|’)", "I"),
        ("are you", "am I"),
        ("yourself", "myself"),
        ("yours", "mine"),
        ("your", "my"),
        (
            "(to|for|with|of|from|by|at|about|than|tells?|told|gives?|gave|asks?|lets?|helps?|"
            "shows?|refunds?|charges?|offers?|sends?|makes?|transfers?|informs?|reminds?) you",
            r"\1 me",
        ),
        ("you", "I"),
    )
]
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"[a-z0-9]+")
_EMPTY = frozenset(
    _WORD.findall(
        "you your are and the for that this with can could would please provide tell give may have "
        "need know what which want share like will not but any from was were has had does did its "
        "them they there here all one out then than also just get got let yes"
    )
)
_GONE = re.compile(r"\b(being transferred|transferred to|human agent)\b")


@runtime_checkable
class HasScenario(Protocol):
    """A benchmark whose users play a scenario: a language model or a person can be one, too."""

    user_tools: tuple[ToolSpec, ...]

    def brief(self, view: UserView) -> str:
        """What a language model that plays the user is told of its part."""
        ...


class Customers:
    """The users of such a benchmark, by rule."""

    name: str
    user_tools: tuple[ToolSpec, ...] = ()

    def user_view(self, task: Task) -> UserView:
        """The parts of the scenario, as they are written."""
        parts = task.goal["scenario"]
        facts = tuple(Fact(name, text, ()) for name, text in parts.items() if text)
        wish = Wish(REASON, task.query, (), (), "know")
        return UserView(self.name, task.query, facts, (wish,), task.seed, labels=_LABELS)

    def answer(self, history: Sequence[Message], view: UserView, random: Random) -> UserReply:
        """Do with its tools what the agent names, then say what they showed; or else talk."""
        shown = _returned(history)
        if shown:
            return UserReply("\n".join(shown), "inform")
        now = history[-1].content
        calls, lacking = named_calls(now, self.user_tools)
        if calls:
            return UserReply("", "inform", calls=calls)
        if lacking:
            return UserReply(f"what shall i take as {lacking} ?", "clarify")
        return _talk([m.content for m in history if m.role == "assistant"], view)


def _returned(history: Sequence[Message]) -> list[str]:
    """What the user's own tools have returned since the agent spoke."""
    found: list[str] = []
    for message in reversed(history):
        if message.role != "tool" or message.call is None:
            break
        found.insert(0, f"{message.call.name}: {message.content}")
    return found


def _talk(heard: Sequence[str], view: UserView) -> UserReply:
    now = heard[-1]
    if _GONE.search(normal(now)):
        return UserReply("ok , thank you", "leave", leaves=True)
    if len({normal(text) for text in heard[-STUBBORN:]}) == 1 and len(heard) >= STUBBORN:
        return UserReply("i have to go now", "leave", leaves=True)
    if asks_confirmation(now):
        return UserReply("yes , please", "confirm")
    if offers(now) or (reports(now) and not asks(now)):
        if len(heard) == 1:
            return UserReply(view.query, "ask")
        return UserReply("no , that is all . thank you", "thank", leaves=True)
    if asks(now):
        return UserReply(*_told(now, view))
    return UserReply("ok", "wait")


def _told(question: str, view: UserView) -> tuple[str, str]:
    """The sentences that share most words with the question; else what the customer knows."""
    parts = {fact.name: sentences(first_person(fact.value)) for fact in view.facts}
    every = [sentence for name in _TOLD for sentence in parts.get(name, ())]
    wanted = _words(question)
    shared = [len(wanted & _words(sentence)) for sentence in every]
    most = max(shared, default=0)
    if most:
        best = (text for text, number in zip(every, shared, strict=True) if number == most)
        return " ".join(best), "inform"
    known = parts.get(KNOWN) or parts.get(REASON)
    return (" ".join(known), "inform") if known else ("i do not know that", "unknown")


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower())) - _EMPTY


@lru_cache(maxsize=4096)
def first_person(text: str) -> str:
    """What is said to the customer as the customer says it: "You want" becomes "I want"."""
    for pattern, after in _PERSON:
        text = pattern.sub(after, text)
    return text


def sentences(text: str) -> list[str]:
    """The sentences of a text that have a letter or a digit in them."""
    parts = (" ".join(part.split()) for part in _SENTENCE.split(text))
    return [part for part in parts if any(map(str.isalnum, part))]


def named_calls(text: str, tools: Sequence[ToolSpec]) -> tuple[tuple[ToolCall, ...], str]:
    """The calls of tools that a text names, in its order; and the argument that the first lacks.

    A tool is named by its name, or by that with spaces for underscores; its arguments follow as a
    JSON object or as `key=value`, or are values that the tool's schema lists.
    """
    found: list[tuple[int, ToolCall]] = []
    lacking = ""
    lower = text.lower()
    for tool in sorted(tools, key=lambda tool: (-len(tool.name), tool.name)):
        name = tool.name.replace("_", "[ _]")
        match = re.search(rf"(?<![\w]){name}(?![\w])", lower)
        if match is None:
            continue
        # A longer name may hold a shorter one: toggle_wifi_calling is no toggle_wifi.
        lower = lower[: match.start()] + " " * len(match[0]) + lower[match.end() :]
        arguments = _arguments(text, match.end(), tool)
        missing = [key for key in tool.parameters.get("required", ()) if key not in arguments]
        if missing:
            lacking = lacking or missing[0].replace("_", " ")
        else:
            found.append((match.start(), ToolCall(tool.name, arguments)))
    calls = tuple(call for _, call in sorted(found, key=lambda pair: pair[0]))
    return calls, lacking


def _arguments(text: str, end: int, tool: ToolSpec) -> dict[str, Any]:
    after = text[end:].lstrip(" `:(")
    if after.startswith("{"):
        try:
            written: dict[str, Any] = json.JSONDecoder().raw_decode(after)[0]
        except (ValueError, RecursionError):
            return {}
        return written
    arguments: dict[str, Any] = {}
    for key, schema in tool.parameters.get("properties", {}).items():
        if match := re.search(rf"\b{key}\s*=\s*[\"']?([\w-]+)", text[end:]):
            arguments[key] = match[1]
        elif listed := [v for v in _listed(schema, tool.parameters) if v in after.lower()]:
            arguments[key] = listed[0]
    return arguments


def _listed(schema: Any, root: Mapping[str, Any]) -> list[str]:
    """The values that a schema lists, directly, by reference or as one of several schemas."""
    if not isinstance(schema, dict):
        return []
    place = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    inner = [*schema.get("anyOf", ()), *([root["$defs"][place]] if place else [])]
    own = [value for value in schema.get("enum", ()) if isinstance(value, str)]
    return own + [value for each in inner for value in _listed(each, root)]


def endless(call: ToolCall) -> bool:
    """A power in a calculation: code of Python's own would compute it, and nothing stops that."""
    return call.name == "calculate" and "**" in str(call.arguments.get("expression", ""))
