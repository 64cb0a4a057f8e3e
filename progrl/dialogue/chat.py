"""The codec of chat models from Hugging Face folders, by their own chat template.

The opening is the template's rendering. What comes later is only ever the part that the template
puts after an agent's message, cut from the rendering of a small stand-in conversation: so
separators are there, and templates that drop earlier thoughts change nothing of what was sampled.

A call is JSON in <tool_call> tags, as Qwen and Hermes models write it. The tool `finish` ends the
conversation with a message to the user.
"""

import json
import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any, Literal

from progrl.dialogue.calls import unknown_tool
from progrl.dialogue.codec import STOP, TALK, Bias, Hint
from progrl.dialogue.compact import CODEC_FILE
from progrl.dialogue.messages import Action, Message, Say, ToolCall, ToolSpec
from progrl.errors import CheckpointError, ConfigurationError, MalformedAction
from progrl.files import write_json

VERSION = 1
KIND = "chat"
ToolFormat = Literal["template", "text"]
"""Whether the template tells the model of its tools, or a text of ours in the system message."""

FINISH = ToolSpec(
    "finish",
    "End the conversation, with a last message to the user. Nothing can be done after it.",
    {
        "type": "object",
        "properties": {"message": {"type": "string", "description": "Last words to the user."}},
        "required": ["message"],
        "additionalProperties": False,
    },
)
_SENTINEL = "sentinel0of0progrl"
_TAGS = {f"<{end}{tag}>" for tag in ("tool_call", "tool_response", "think") for end in ("", "/")}
# Some templates write the date. What is rendered is a function of the conversation alone.
_DAY = date(2024, 7, 26)
_DATE = re.compile(r"""strftime_now\(\s*(['"])(.*?)\1\s*\)""")
_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_CLOSING = "When everything is done, or you cannot do more, call the tool finish."
_TOOLS_TEXT = """You can call tools, one at a time. A call is a message of this form and no other \
words:
<tool_call>
{"name": "the tool's name", "arguments": {"argument": "value"}}
</tool_call>
The tools, with their arguments; those with ? may be left out:
"""


class ChatCodec:
    """Between messages and the ids of a Hugging Face tokenizer with a chat template.

    Args:
        tokenizer: a fast tokenizer.
        tool_format: found out from the template where it is None.

    Raises:
        ConfigurationError: there is no chat template, or it marks no end of the agent's messages.
    """

    def __init__(self, tokenizer: Any, tool_format: ToolFormat | None = None) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise ConfigurationError(
                "agent.folder: the tokenizer has no chat template, so the model is no chat model. "
                "Name an instruction-tuned one."
            )
        self.tokenizer = tokenizer
        added = tokenizer.added_tokens_decoder.values()
        names = {str(t.content) for t in added if len(t.content) > 2 and not t.content.isspace()}
        self._markers = sorted(names | _TAGS, key=lambda text: (-len(text), text))
        self._special = {str(t.content) for t in added if t.special}
        self.tool_format = tool_format or self._find_tool_format()
        self._system_role = self._renders("system")
        # A template that renders any role whatever has no tool role of its own.
        self._tool_role = self._renders("tool") and not self._renders("zzz")
        self._end = self._find_end()
        self._end_id: int = tokenizer.convert_tokens_to_ids(self._end)
        self.stop_ids = frozenset({self._end_id} | ({tokenizer.eos_token_id} - {None}))
        opening = self._render([{"role": "user", "content": _SENTINEL}])
        self._begins_in_thought = opening.rfind("<think>") > opening.rfind("</think>")

    def open(
        self, policy: str, tools: Sequence[ToolSpec], query: str, hint: Hint = ()
    ) -> list[int]:
        """The template's rendering of policy, tools and query, ready for the agent to write.

        Raises:
            ConfigurationError: a tool is called `finish`, the codec's own.
        """
        offered, messages = self._opening(policy, tools, f"{self.plain(query)}{_hinted(hint)}")
        return self._encode(self._render(messages, offered))

    def observe(self, message: Message, cut: bool = False, hint: Hint = ()) -> list[int]:
        """What the template puts after the agent's stop token up to the agent's next message."""
        words = f"{self.plain(message.content)}{_hinted(hint)}"
        if message.role == "user":
            following = _message("user", words)
        elif self._tool_role:
            following = {**_message("tool", words), "name": "tool", "tool_call_id": "call00000"}
        else:
            following = _message("user", f"<tool_response>\n{words}\n</tool_response>")
        rendered = self._after_agent(following)
        # Encoded with the stop token before it, as in the whole conversation.
        ids = self._encode(rendered[rendered.index(self._end) :])
        return ids if cut else ids[1:]

    def lean(self, weights: Hint) -> Bias:
        """Refused: a call begins alike whatever its tool, and names are of many tokens."""
        raise ConfigurationError(
            "orchestration.kind: bias needs an agent whose messages begin with a token for the "
            "tool, as the embedded agent's do. Use hint with chat models."
        )

    def act(self, action: Action) -> list[int]:
        """The ids of an action, stop token included."""
        if isinstance(action, Say) and not action.closing:
            return [*self._encode(self.plain(action.text)), self._end_id]
        if isinstance(action, Say):
            action = ToolCall(FINISH.name, {"message": action.text})
        call = {"name": action.name, "arguments": dict(action.arguments)}
        written = json.dumps(call, ensure_ascii=False)
        if self.plain(written) != written:
            written = self.plain(written.replace("<", "\\u003c"))
        return [*self._encode(f"<tool_call>\n{written}\n</tool_call>"), self._end_id]

    def parse(self, ids: Sequence[int], tools: Sequence[ToolSpec]) -> Action:
        """The action that sampled ids stand for; thoughts are no part of it.

        Raises:
            MalformedAction: the message or a thought has no end, there is more than one call, a
                call is no JSON of the known form, or it does not fit its tool.
        """
        if not ids or ids[-1] not in self.stop_ids:
            raise MalformedAction("the message has no end; write shorter")
        text = self._without_thoughts(self.text(ids[:-1]))
        call = call_in(text, tools)
        if call is not None:
            return call
        if stray := next((t for t in self._markers if t in self._special and t in text), None):
            raise MalformedAction(f"{stray} stands within words")
        return Say(text.strip())

    def text(self, ids: Sequence[int]) -> str:
        """Text of ids; special tokens as they are written."""
        text: str = self.tokenizer.decode(
            list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text

    def save(self, folder: Path) -> None:
        """Write the tokenizer's files and codec.json."""
        self.tokenizer.save_pretrained(folder)
        about = {"kind": KIND, "version": VERSION, "tool_format": self.tool_format}
        write_json(folder / CODEC_FILE, about)

    @classmethod
    def load(cls, folder: Path, tool_format: ToolFormat | None = None) -> "ChatCodec":
        """The codec of a local chat model's folder.

        Raises:
            CheckpointError: the tokenizer's files are missing or damaged.
            ConfigurationError: the tokenizer has no chat template.
        """
        from transformers import AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # transformers lets errors of many libraries through
            raise CheckpointError(f"{folder}: the tokenizer cannot be loaded ({error}).") from None
        return cls(tokenizer, tool_format)

    def plain(self, text: str) -> str:
        """Text in which no marker of the tokenizer's stands: a space goes into each."""
        for marker in self._markers:
            if marker in text:
                text = text.replace(marker, f"{marker[0]} {marker[1:]}")
        return text

    def _opening(
        self, policy: str, tools: Sequence[ToolSpec], words: str
    ) -> tuple[list[dict[str, Any]] | None, list[dict[str, Any]]]:
        """The tools that the template is to render, if it can, and the first messages."""
        if any(tool.name == FINISH.name for tool in tools):
            raise ConfigurationError("A tool named finish cannot be offered to a chat model.")
        offered = [_function(tool) for tool in (*tools, FINISH)]
        if self.tool_format == "text":
            system = system_text(policy, tools)
        else:
            system = f"{policy.strip()}\n\n{_CLOSING}".strip()
        messages = [_message("system", system), _message("user", words)]
        if not self._system_role:
            messages = [_message("user", f"{system}\n\n{words}")]
        return offered if self.tool_format == "template" else None, messages

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def _render(self, messages: list[dict[str, Any]], tools: Any = None) -> str:
        text: str = self.tokenizer.apply_chat_template(
            messages,
            tools=tools,
            add_generation_prompt=True,
            tokenize=False,
            chat_template=_DATE.sub(_day, self.tokenizer.get_chat_template(tools=tools)),
            date_string=f"{_DAY:%d %b %Y}",
        )
        return text

    def _after_agent(self, following: dict[str, Any]) -> str:
        """What the template renders after the words of an agent that `following` answers."""
        begin = [_message("user", "a"), _message("assistant", _SENTINEL)]
        rendered = self._render([*begin, following])
        return rendered[rendered.index(_SENTINEL) + len(_SENTINEL) :]

    def _renders(self, role: str) -> bool:
        message = _message(role, _SENTINEL)
        user, assistant = _message("user", "a"), _message("assistant", "b")
        messages = [message, user] if role == "system" else [user, assistant, message]
        try:
            return _SENTINEL in self._render(messages)
        except Exception:  # a template refuses by any error it likes
            return False

    def _find_tool_format(self) -> ToolFormat:
        probe = ToolSpec(_SENTINEL, "", {"type": "object", "properties": {}})
        try:
            rendered = self._render([_message("user", "a")], [_function(probe)])
        except Exception:  # a template refuses by any error it likes
            return "text"
        return "template" if _SENTINEL in rendered and "<tool_call>" in rendered else "text"

    def _find_end(self) -> str:
        after = self._after_agent(_message("user", "b"))
        found = [(after.index(token), token) for token in sorted(self._special) if token in after]
        if not found:
            raise ConfigurationError(
                "agent.folder: the chat template puts no special token after the agent's words, so "
                "their end cannot be told. Use a model whose template does."
            )
        return min(found)[1]

    def _without_thoughts(self, text: str) -> str:
        if self._begins_in_thought:
            text = f"<think>{text}"
        return without_thoughts(text)


def system_text(policy: str, tools: Sequence[ToolSpec]) -> str:
    """Policy and tools in words, for models whose template or endpoint is not told of tools."""
    lines = "\n".join(signature(tool) for tool in (*tools, FINISH))
    return f"{policy.strip()}\n\n{_CLOSING}".strip() + f"\n\n{_TOOLS_TEXT}{lines}"


def call_in(text: str, tools: Sequence[ToolSpec]) -> Action | None:
    """The call that stands in a message, or the closing that it makes; None in mere words.

    Raises:
        MalformedAction: more than one call, one that is not closed, or one that is none.
    """
    calls = _CALL.findall(text)
    if len(calls) > 1:
        raise MalformedAction("more than one call in a message; make one, then wait")
    if calls:
        return _parsed(calls[0], tools)
    if "<tool_call>" in text:
        raise MalformedAction("<tool_call> is not closed by </tool_call>")
    return None


def without_thoughts(text: str) -> str:
    """A message less what stands in <think> tags.

    Raises:
        MalformedAction: a thought has no end.
    """
    text = _THOUGHT.sub("", text)
    if "<think>" in text:
        raise MalformedAction("a thought has no end; think shorter")
    return text


def _hinted(hint: Hint) -> str:
    """A hint in words, after a blank line."""
    if not hint:
        return ""
    beside = {TALK: "talk to the user", STOP: FINISH.name}
    tools = ", ".join(f"{beside.get(name, name)} {share:.0%}" for name, share in hint)
    return f"\n\n(Likely next: {tools}.)"


def _message(role: str, content: str) -> dict[str, Any]:
    return {"role": role, "content": content}


def _function(tool: ToolSpec) -> dict[str, Any]:
    about = {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }
    return {"type": "function", "function": about}


def signature(tool: ToolSpec) -> str:
    """A tool in one line: a third of the tokens of its JSON schema."""
    required = set(tool.parameters.get("required", ()))
    arguments = [
        f"{key}{'' if key in required else '?'}: {_kind(schema)}"
        for key, schema in tool.parameters.get("properties", {}).items()
    ]
    return f"{tool.name}({', '.join(arguments)}): {tool.description}"


def _kind(schema: Any) -> str:
    """What an argument may be: simple schemas in words, others as they are."""
    if not isinstance(schema, dict) or schema.keys() - {"type", "enum", "description"}:
        return json.dumps(schema, ensure_ascii=False)
    values = schema.get("enum")
    kind = "|".join(map(json.dumps, values)) if values else str(schema.get("type", "any"))
    return f"{kind} ({schema['description']})" if schema.get("description") else kind


def _parsed(written: str, tools: Sequence[ToolSpec]) -> Action:
    try:
        call = json.loads(written)
    except (ValueError, RecursionError) as error:
        raise MalformedAction(f"the call is no JSON: {error}") from None
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
        raise MalformedAction('a call is {"name": "...", "arguments": {...}}')
    arguments = call.get("arguments", {})
    if not isinstance(arguments, dict):
        raise MalformedAction(f"{call['name']}: arguments must be a JSON object")
    if call["name"] == FINISH.name:
        FINISH.check(arguments)
        return Say(arguments["message"], closing=True)
    tool = next((tool for tool in tools if tool.name == call["name"]), None)
    if tool is None:
        raise unknown_tool(call["name"], [*tools, FINISH])
    tool.check(arguments)
    return ToolCall(tool.name, arguments)


def _day(call: re.Match[str]) -> str:
    return json.dumps(_DAY.strftime(call[2]))
