"""The codec of the embedded model: few tokens a message, made for learning to copy.

    <|user|>words<|agent|>                                        the opening
    <|call:get_order|><|key:order_id|>1234<|end|>                 a call of a known tool
    <|call|>name<|key|>argument<|is|>value<|end|>                 a call of any other tool
    <|tool|>result<|agent|>   <|user|>words<|agent|>              what comes back
    <|say|>words<|end|>       <|close|>words<|end|>               words to the user
    <|tools|><|call:get_order|>7<|say|>2      a hint before <|agent|>: tools, tenths of certainty

Digits are tokens of their own, so that numbers can be copied. Text never becomes a marker: markers
are entries of the vocabulary that no merge leads to, so a user who types one gets ordinary pieces.
"""

import json
import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from progrl.dialogue.calls import unknown_tool, value_of
from progrl.dialogue.codec import STOP, TALK, Bias, Hint
from progrl.dialogue.messages import Action, Message, Say, ToolCall, ToolSpec
from progrl.errors import CheckpointError, ConfigurationError, DataError, MalformedAction
from progrl.files import read_json, write_json, write_text

VERSION = 1
KIND = "compact"
TOKENIZER_FILE = "tokenizer.json"
CODEC_FILE = "codec.json"
_MARKERS = ["pad", "user", "tool", "agent", "tools", "say", "close", "call", "key", "is", "end"]
_BYTES = 256


def _marker(name: str) -> str:
    return f"<|{name}|>"


def spaced(text: str) -> str:
    """Text as it is encoded: a leading space makes a word the same token wherever it stands.

    Text that starts with a digit needs none, its digits are tokens anyway; `unspaced` inverts.
    """
    return text if not text or text[0].isdigit() else " " + text


def unspaced(text: str) -> str:
    """The inverse of `spaced`; also takes sampled text without the leading space."""
    return text.removeprefix(" ")


def train_tokenizer(
    texts: Iterable[str], tools: Sequence[ToolSpec], vocabulary_size: int
) -> Tokenizer:
    """A byte-level BPE over `texts`, with markers and the names of `tools` as single tokens.

    Args:
        texts: what is said, returned and given as argument values, one piece of text each.
        tools: whose names, and whose top-level arguments' names, become tokens.
        vocabulary_size: most tokens in all.

    Raises:
        ConfigurationError: `vocabulary_size` has no room for bytes, markers and names.
    """
    keys = sorted({key for tool in tools for key in tool.parameters.get("properties", {})})
    added = [_marker(name) for name in _MARKERS]
    added += [_marker(f"call:{name}") for name in sorted({tool.name for tool in tools})]
    added += [_marker(f"key:{key}") for key in keys]
    if vocabulary_size < len(added) + _BYTES:
        raise ConfigurationError(
            f"agent.vocabulary: {vocabulary_size} is too small; bytes, markers and the names of "
            f"{len(tools)} tools take {len(added) + _BYTES}. Set it higher."
        )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = _pre_tokenizer()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size - len(added),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator((spaced(text) for text in texts), trainer)
    # Markers enter as plain entries of the vocabulary. Added tokens of the tokenizers library
    # would be matched within any text.
    learnt = json.loads(tokenizer.to_str())["model"]
    vocabulary = {token: number for number, token in enumerate(added)}
    for token, number in sorted(learnt["vocab"].items(), key=lambda item: item[1]):
        vocabulary[token] = number + len(added)
    merges = [tuple(pair) for pair in learnt["merges"]]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer = _pre_tokenizer()
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )


class CompactCodec:
    """Between messages and the ids of a tokenizer that `train_tokenizer` made.

    With `list_tools` the opening prompt names the tools; policy texts and descriptions never enter
    it.
    """

    def __init__(self, tokenizer: Tokenizer, *, list_tools: bool = False) -> None:
        self.tokenizer = tokenizer
        self.list_tools = list_tools
        self.size: int = tokenizer.get_vocab_size()
        vocabulary = tokenizer.get_vocab()
        try:
            marker = {name: vocabulary[_marker(name)] for name in _MARKERS}
        except KeyError as error:
            raise CheckpointError(
                f"This tokenizer lacks the marker {error}: it is not one of the embedded agent's. "
                "Run `progrl sft` to make a model with its own."
            ) from None
        self._calls = _names(vocabulary, "call")
        self._keys = _names(vocabulary, "key")
        self._call_of = {number: name for name, number in self._calls.items()}
        self._key_of = {number: name for name, number in self._keys.items()}
        special = {*marker.values(), *self._calls.values(), *self._keys.values()}
        self._special = {token: text for text, token in vocabulary.items() if token in special}
        self._user, self._tool, self._agent = marker["user"], marker["tool"], marker["agent"]
        self._tools, self._say, self._close = marker["tools"], marker["say"], marker["close"]
        self._call, self._key, self._is = marker["call"], marker["key"], marker["is"]
        self._end = marker["end"]
        self.pad_id = marker["pad"]
        self.stop_ids = frozenset({self._end})

    @property
    def copyable(self) -> tuple[int, int]:
        """The range [low, high) of ids that text is made of: all but markers and names."""
        return len(self._special), self.size

    def encode(self, text: str) -> list[int]:
        """The ids of text; never a marker's."""
        ids: list[int] = self.tokenizer.encode(spaced(text), add_special_tokens=False).ids
        return ids

    def open(
        self, policy: str, tools: Sequence[ToolSpec], query: str, hint: Hint = ()
    ) -> list[int]:
        """The prompt before the agent's first message; `policy` is not part of it."""
        ids: list[int] = []
        if self.list_tools:
            ids.append(self._tools)
            for tool in tools:
                ids += self._call_ids(tool.name)
        return [*ids, self._user, *self.encode(query), *self._hint_ids(hint), self._agent]

    def observe(self, message: Message, cut: bool = False, hint: Hint = ()) -> list[int]:
        """A user's or a tool's message, ready for the agent to write again."""
        end = [self._end] if cut else []
        role = self._user if message.role == "user" else self._tool
        words = self.encode(message.content)
        return [*end, role, *words, *self._hint_ids(hint), self._agent]

    def lean(self, weights: Hint) -> Bias:
        """The bias towards tools; those without a token of their own share the general one."""
        bias: dict[int, float] = {}
        for name, weight in weights:
            start = self._start_ids(name)[0]
            bias[start] = bias.get(start, 0.0) + weight
        return sorted(bias.items())

    def act(self, action: Action) -> list[int]:
        """The ids of an action, end marker included."""
        if isinstance(action, Say):
            start = self._close if action.closing else self._say
            return [start, *self.encode(action.text), self._end]
        ids = self._call_ids(action.name)
        for key, value in action.arguments.items():
            ids += self._key_ids(key)
            ids += self.encode(value if isinstance(value, str) else _json(value))
        return [*ids, self._end]

    def parse(self, ids: Sequence[int], tools: Sequence[ToolSpec]) -> Action:
        """The action that sampled ids stand for.

        Raises:
            MalformedAction: no end, no known start, markers within words, an unknown tool, or
                arguments that break its schema.
        """
        if not ids or ids[-1] != self._end:
            raise MalformedAction("the message has no end; write shorter")
        start, body = ids[0], list(ids[1:-1])
        if start in (self._say, self._close):
            return Say(self._words(body), closing=start == self._close)
        if start in self._call_of:
            name, rest = self._call_of[start], body
        elif start == self._call:
            at = next((i for i, t in enumerate(body) if t in self._special), len(body))
            name, rest = self._words(body[:at]), body[at:]
        else:
            raise MalformedAction("a message starts with say, close or call")
        return self._parse_call(name, rest, tools)

    def text(self, ids: Sequence[int]) -> str:
        """Readable text of ids; markers as they are written."""
        parts: list[str] = []
        run: list[int] = []
        for token in ids:
            if token in self._special:
                parts += [self._decode(run), self._special[token]]
                run = []
            else:
                run.append(token)
        return "".join([*parts, self._decode(run)])

    def save(self, folder: Path) -> None:
        """Write tokenizer.json and codec.json."""
        write_text(folder / TOKENIZER_FILE, self.tokenizer.to_str(pretty=True))
        names = {"tools": sorted(self._calls), "keys": sorted(self._keys)}
        description = {"kind": KIND, "version": VERSION, "list_tools": self.list_tools, **names}
        write_json(folder / CODEC_FILE, description)

    @classmethod
    def load(cls, folder: Path) -> "CompactCodec":
        """The codec that `save` wrote.

        Raises:
            CheckpointError: a file is missing, damaged, or of another kind or version.
        """
        try:
            about = read_json(folder / CODEC_FILE)
        except DataError as error:
            raise CheckpointError(str(error)) from None
        if not isinstance(about, dict) or (about.get("kind"), about.get("version")) != (
            KIND,
            VERSION,
        ):
            raise CheckpointError(
                f"{folder / CODEC_FILE}: not a compact codec of version {VERSION}; the model was "
                "made by another progrl. Train it again."
            )
        path = folder / TOKENIZER_FILE
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise CheckpointError(f"{path}: missing or damaged ({error}).") from None
        return cls(tokenizer, list_tools=bool(about.get("list_tools")))

    def _hint_ids(self, hint: Hint) -> list[int]:
        ids = [self._tools] if hint else []
        for name, confidence in hint:
            ids += [*self._start_ids(name), *self.encode(str(min(9, int(10 * confidence))))]
        return ids

    def _start_ids(self, name: str) -> list[int]:
        """What a message that uses a tool begins with."""
        beside = {TALK: self._say, STOP: self._close}
        return [beside[name]] if name in beside else self._call_ids(name)

    def _call_ids(self, name: str) -> list[int]:
        known = self._calls.get(name)
        return [self._call, *self.encode(name)] if known is None else [known]

    def _key_ids(self, key: str) -> list[int]:
        known = self._keys.get(key)
        return [self._key, *self.encode(key), self._is] if known is None else [known]

    def _decode(self, ids: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(list(ids), skip_special_tokens=False)
        return unspaced(text)

    def _words(self, ids: Sequence[int]) -> str:
        stray = next((t for t in ids if t in self._special), None)
        if stray is not None:
            raise MalformedAction(f"{self._special[stray]} stands within words")
        return self._decode(ids)

    def _parse_call(self, name: str, rest: Sequence[int], tools: Sequence[ToolSpec]) -> ToolCall:
        tool = next((tool for tool in tools if tool.name == name), None)
        if tool is None:
            raise unknown_tool(name, tools)
        heads = [i for i, t in enumerate(rest) if t in self._key_of or t == self._key]
        if rest and (not heads or heads[0] > 0):
            raise MalformedAction(f"{name}: words before the first argument")
        arguments: dict[str, Any] = {}
        for start, end in pairwise([*heads, len(rest)]):
            key, value = self._field(name, rest[start:end])
            if key in arguments:
                raise MalformedAction(f"{name}: {key} is given twice")
            arguments[key] = value_of(self._words(value), tool, key)
        tool.check(arguments)
        return ToolCall(name, arguments)

    def _field(self, tool: str, ids: Sequence[int]) -> tuple[str, Sequence[int]]:
        if ids[0] in self._key_of:
            return self._key_of[ids[0]], ids[1:]
        if self._is not in ids:
            raise MalformedAction(f"{tool}: an argument has no value")
        at = ids.index(self._is)
        return self._words(ids[1:at]), ids[at + 1 :]


def _names(vocabulary: dict[str, int], kind: str) -> dict[str, int]:
    pattern = re.compile(rf"<\|{kind}:(.+)\|>", re.DOTALL)
    found = ((pattern.fullmatch(token), number) for token, number in vocabulary.items())
    return {match[1]: number for match, number in found if match}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
