"""Tools of a desk: how one is declared, checked and run, and those that every desk has."""

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from progrl.dialogue.acts import contains, mentions, normal
from progrl.dialogue.messages import ToolSpec
from progrl.environments.service.world import Record, World
from progrl.expressions import parsed

TOPICS = ("lost", "billing", "warranty", "complaints", "privacy", "delivery", "jobs")

Groups = tuple[tuple[str, ...], ...]


class Refusal(Exception):
    """A tool did not do what was asked; the message is read by the agent.

    `final`: the same call again cannot help.
    """

    def __init__(self, text: str, final: bool = True) -> None:
        super().__init__(text)
        self.final = final


@dataclass(slots=True)
class Session:
    """What tools work on: the records, and the users who have been identified."""

    world: World
    users: set[str] = field(default_factory=set)

    def own(self, table: str, key: str) -> Record:
        """The record `key`, which a tool is about to change.

        Raises:
            Refusal: there is none, or its user has not been identified.
        """
        record = self.world.get(table, key)
        if record is None:
            raise Refusal(f"no {table} {key}")
        if record["user"] not in self.users:
            raise Refusal("find the user first", final=False)
        return record


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool found or did: as the agent reads it, and a key that names the deed itself."""

    text: str
    key: str


@dataclass(frozen=True)
class Tool:
    """A tool with what runs it.

    Attributes:
        spec: as the agent sees it.
        run: does it, or raises Refusal.
        verbs: a request to confirm this write must contain one of them.
        named: of each group of values that it gives for a call, such a request must mention one.
    """

    spec: ToolSpec
    run: Callable[[Session, Mapping[str, str]], Result]
    verbs: tuple[str, ...] = ()
    named: Callable[[Session, Mapping[str, str]], Groups] = lambda session, arguments: ()

    @cached_property
    def _plain(self) -> tuple[frozenset[str], dict[str, frozenset[str] | None]]:
        schema = self.spec.parameters
        choices = {
            name: frozenset(form["enum"]) if "enum" in form else None
            for name, form in schema["properties"].items()
        }
        return frozenset(schema["required"]), choices

    def check(self, arguments: Mapping[str, Any]) -> None:
        """As `ToolSpec.check`; arguments that are plainly right skip the slow validator."""
        required, choices = self._plain
        if required <= arguments.keys():
            for name, value in arguments.items():
                if name not in choices or type(value) is not str:
                    break
                choice = choices[name]
                if choice is not None and value not in choice:
                    break
            else:
                return
        self.spec.check(arguments)

    def confirmed_by(self, text: str, session: Session, arguments: Mapping[str, str]) -> bool:
        """A user who agreed to `text` agreed to this call."""
        return contains(text, self.verbs) and all(
            any(mentions(text, value) for value in group)
            for group in self.named(session, arguments)
        )


def spec(
    name: str,
    description: str,
    needed: Mapping[str, str | tuple[str, ...]],
    optional: Mapping[str, str | tuple[str, ...]] | None = None,
    writes: bool = False,
) -> ToolSpec:
    """A tool whose arguments are all text: by name a description, or the choices."""
    properties = {
        key: {"type": "string", "description": form}
        if isinstance(form, str)
        else {"type": "string", "enum": list(form)}
        for key, form in {**needed, **(optional or {})}.items()
    }
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(needed),
        "additionalProperties": False,
    }
    return ToolSpec(name, description, schema, writes)


_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _value(node: ast.expr) -> int | float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            result: int | float = _OPERATORS[type(op)](_value(left), _value(right))
            return result
    raise ValueError


def arithmetic(expression: str) -> str:
    """The value of numbers joined by + - * / and brackets, rounded to two places.

    Raises:
        Refusal: it is no such expression, or has no value.
    """
    if len(expression) > 80:
        raise Refusal("expression too long")
    try:
        value = _value(parsed(expression.strip()))
        rounded = round(value, 2)
        return str(int(rounded) if rounded == int(rounded) else rounded)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):
        raise Refusal(f"cannot compute {expression.strip()}") from None


def _calculate(session: Session, arguments: Mapping[str, str]) -> Result:
    result = arithmetic(arguments["expression"])
    return Result(f"result {result}", f"calculate:{result}")


def _find_user(session: Session, arguments: Mapping[str, str]) -> Result:
    wanted = {name: normal(value) for name, value in arguments.items()}
    if "email" not in wanted and not {"name", "zip"} <= wanted.keys():
        raise Refusal("find_user needs email , or name and zip")
    for key, user in session.world.tables["user"].items():
        if all(user[name] == value for name, value in wanted.items()):
            session.users.add(key)
            text = f"user {key} {user['name']} zip {user['zip']} points {user['points']}"
            return Result(f"{text} ; pay {' '.join(user['pays'])}", f"find_user:{key}")
    raise Refusal("no such user")


def _transfer(session: Session, arguments: Mapping[str, str]) -> Result:
    topic, about = arguments["topic"], arguments.get("about", "")
    if about:
        tables = [t for t in session.world.tables if session.world.get(t, about) is not None]
        owned = [t for t in tables if "user" in (session.world.get(t, about) or {})]
        if not owned:
            raise Refusal(f"nothing known as {about}")
        session.own(owned[0], about)
    session.world.put("desk", "transfer", topic=topic, about=about)
    return Result("transferred", f"transfer_to_human:{topic}:{about}")


SHARED_TOOLS = (
    Tool(
        spec(
            "find_user",
            "Find and identify a user by email, or by name and zip.",
            {},
            {"email": "e-mail", "name": "first and last name", "zip": "zip code"},
        ),
        _find_user,
    ),
    Tool(
        spec(
            "calculate",
            "Compute with + - * / and brackets.",
            {"expression": "for instance 14 + 20"},
        ),
        _calculate,
    ),
    Tool(
        spec(
            "transfer_to_human",
            "Hand the user over to a person.",
            {"topic": TOPICS},
            {"about": "id of the order or reservation it is about"},
        ),
        _transfer,
    ),
)
