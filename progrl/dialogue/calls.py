"""Tool calls from text: values of arguments, and calls as people write them."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from progrl.dialogue.messages import ToolCall, ToolSpec
from progrl.errors import MalformedAction

_NAMED = 8  # tools that an error message names at most: a small model reads it
_CALL = re.compile(r"\s*([\w-]*)\s*(.*?)\s*", re.DOTALL)


def parsed_call(text: str, tools: Sequence[ToolSpec]) -> ToolCall:
    """What `name {"key": "value"}`, `name key=value`, or `name(key='value', ...)` calls.

    Raises:
        MalformedAction: the text is no call of one of `tools` with arguments of its schema.
    """
    match = _CALL.fullmatch(text)
    name, written = (match[1], match[2]) if match else ("", "")
    tool = next((tool for tool in tools if tool.name == name), None)
    if tool is None:
        raise unknown_tool(name or text.strip(), tools)
    arguments = _json(tool, written) if written.startswith("{") else _pairs(tool, written)
    tool.check(arguments)
    return ToolCall(name, arguments)


def written_call(call: ToolCall) -> str:
    """The call as `name key=value`, or with its arguments as JSON where one is no plain string."""
    if all(isinstance(value, str) for value in call.arguments.values()):
        pairs = (f"{key}={_quoted(value)}" for key, value in call.arguments.items())
        return " ".join([call.name, *pairs])
    return f"{call.name} {json.dumps(dict(call.arguments), ensure_ascii=False)}"


def _quoted(value: str) -> str:
    """Quoted for `shlex` where it must be, and no further: an e-mail address need not be."""
    return value if re.fullmatch(r"[\w@.:/+-]+", value) else shlex.quote(value)


def _json(tool: ToolSpec, written: str) -> Mapping[str, Any]:
    try:
        arguments: dict[str, Any] = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise MalformedAction(f"{tool.name}: the arguments are no JSON ({error})") from None
    return arguments


def _pairs(tool: ToolSpec, written: str) -> Mapping[str, Any]:
    bracketed = written.startswith("(") and written.endswith(")")
    lexer = shlex.shlex(written[1:-1] if bracketed else written, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    if bracketed:
        lexer.whitespace += ","
    try:
        pairs = [part.partition("=") for part in lexer]
    except ValueError as error:
        raise MalformedAction(f"{tool.name}: {error}") from None
    arguments: dict[str, Any] = {}
    for key, is_, value in pairs:
        if not is_:
            raise MalformedAction(f"{tool.name}: {key} has no value")
        arguments[key] = value_of(value, tool, key)
    return arguments


def unknown_tool(name: str, tools: Sequence[ToolSpec]) -> MalformedAction:
    """The error for a call of a tool that is not there; names some that are."""
    some = ", ".join(tool.name for tool in tools[:_NAMED])
    more = ", ..." if len(tools) > _NAMED else ""
    return MalformedAction(f"unknown tool {name}; tools: {some}{more}")


def value_of(text: str, tool: ToolSpec, key: str) -> Any:
    """An argument's value from its text: words where the schema wants a string, else JSON.

    Where a schema takes strings and other types too, text that is JSON of another type wins.
    Text that is not what the schema wants stays text, and the schema's check says so.
    """
    schema = tool.parameters.get("properties", {}).get(key, {})
    kind = schema.get("type", "string") if isinstance(schema, dict) else "string"
    kinds = {kind} if isinstance(kind, str) else set(kind)
    if kinds == {"string"}:
        return text
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, str) and "string" in kinds else value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
