"""What is said and done in a conversation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from progrl.errors import MalformedAction

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True)
class ToolSpec:
    """A tool as the agent sees it.

    `parameters` is a JSON schema of type object; `writes` marks a tool that changes the
    environment's state, which policies may bind to a confirmation.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    writes: bool = False

    @cached_property
    def _validator(self) -> Any:
        from jsonschema import Draft202012Validator

        return Draft202012Validator(dict(self.parameters))

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Raise MalformedAction, in words for the agent, where arguments break the schema."""
        error = next(self._validator.iter_errors(dict(arguments)), None)
        if error is not None:
            where = ".".join(str(part) for part in error.absolute_path)
            raise MalformedAction(f"{self.name}: {where + ': ' if where else ''}{error.message}")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The agent calls a tool."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in self.arguments.items())})"


@dataclass(frozen=True, slots=True)
class Say:
    """The agent speaks to the user; with `closing` it ends the conversation by doing so."""

    text: str
    closing: bool = False

    def __str__(self) -> str:
        return self.text + (" [closes]" if self.closing else "")


Action = ToolCall | Say


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a conversation's history.

    An assistant's message has `content` where it spoke (`closing` if that ended the conversation)
    and `call` where it called a tool; a message that was no valid action has its raw text as
    `content` and `malformed` true. A tool's message has `call` where it was the user who called.
    """

    role: Role
    content: str
    call: ToolCall | None = None
    closing: bool = False
    malformed: bool = False


def words(history: Sequence[Message]) -> list[Message]:
    """What a user knows of a history: both sides' words, and what its own calls returned."""
    return [
        m
        for m in history
        if m.role == "user"
        or (m.role == "assistant" and m.call is None and not m.malformed)
        or (m.role == "tool" and m.call is not None)
    ]
