"""The codec of chat templates: what is appended is what the template would have put there."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from progrl.dialogue.chat import FINISH, ChatCodec, signature
from progrl.dialogue.messages import Action, Message, Say, ToolCall, ToolSpec
from progrl.errors import CheckpointError, ConfigurationError, MalformedAction
from tests.dialogue.chat_models import BARE, TEMPLATES, chat_tokenizer

LOOK = ToolSpec(
    "look",
    "Look it up.",
    {
        "type": "object",
        "properties": {"what": {"type": "string"}, "times": {"type": "integer"}},
        "required": ["what"],
    },
)
CODECS = {name: ChatCodec(chat_tokenizer(template)) for name, template in TEMPLATES.items()}
# Templates trim what is said, so words in these tests have no spaces at their ends.
words = st.text(alphabet="abc de\n1é", min_size=1).map(str.strip).filter(bool)


def test_the_manner_of_each_template_is_found_out() -> None:
    assert {n: (c.tool_format, c._system_role, c._tool_role) for n, c in CODECS.items()} == {
        "separated": ("text", True, False),
        "thoughtful": ("template", True, True),
        "bare": ("text", False, False),
        "dated": ("text", True, False),
    }
    assert CODECS["dated"]._begins_in_thought
    assert CODECS["bare"].stop_ids == {CODECS["bare"].tokenizer.eos_token_id}


@pytest.mark.parametrize("name", ["separated", "thoughtful", "bare"])
@settings(max_examples=60, deadline=None)
@given(query=words, exchanges=st.lists(st.tuples(words, words), min_size=1, max_size=4))
def test_appended_ids_are_the_templates_own(
    name: str, query: str, exchanges: list[tuple[str, str]]
) -> None:
    codec = CODECS[name]
    tokenizer = codec.tokenizer
    ids = codec.open("Be kind.", (LOOK,), query)
    offered, messages = codec._opening("Be kind.", (LOOK,), query)
    for said, replied in exchanges:
        ids += [*codec.act(Say(said)), *codec.observe(Message("user", replied))]
        messages += [{"role": "assistant", "content": said}, {"role": "user", "content": replied}]
    whole = codec._render(messages, offered)
    assert codec.text(ids) == whole.replace("[/INST] ", "[/INST]")
    if name != "bare":  # its template puts a space before the agent's words
        assert ids == tokenizer(whole, add_special_tokens=False)["input_ids"]


def test_tool_results_come_in_the_tool_role_or_as_a_users_message() -> None:
    message = Message("tool", "seen")
    assert CODECS["thoughtful"].text(CODECS["thoughtful"].observe(message)) == (
        "\n<|im_start|>user\n<tool_response>\nseen\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert CODECS["separated"].text(CODECS["separated"].observe(message)) == (
        "\n<|im_start|>user\n<tool_response>\nseen\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert CODECS["bare"].text(CODECS["bare"].observe(message)) == (
        "[INST] <tool_response>\nseen\n</tool_response> [/INST]"
    )


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_a_message_that_was_cut_gets_its_end(codec: ChatCodec) -> None:
    message = Message("user", "hello")
    cut = codec.observe(message, cut=True)
    assert cut[1:] == codec.observe(message)
    assert cut[0] in codec.stop_ids


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_tools_and_policy_are_in_the_opening(codec: ChatCodec) -> None:
    opening = codec.text(codec.open("Be kind to all.", (LOOK,), "hello"))
    for part in ("Be kind to all.", "Look it up.", "look", FINISH.name, "hello", "<tool_call>"):
        assert part in opening
    with pytest.raises(ConfigurationError, match="finish"):
        codec.open("", (FINISH,), "hello")


def test_a_tool_in_one_line_says_all_that_its_schema_says() -> None:
    properties = {
        "order": {"type": "string", "description": "order id"},
        "why": {"type": "string", "enum": ["late", "lost"]},
        "items": {"type": "array", "items": {"type": "integer"}},
        "free": {},
    }
    schema = {"type": "object", "properties": properties, "required": ["order"]}
    assert signature(ToolSpec("drop", "Drop it.", schema)) == (
        'drop(order: string (order id), why?: "late"|"lost", '
        'items?: {"type": "array", "items": {"type": "integer"}}, free?: any): Drop it.'
    )


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@pytest.mark.parametrize("role", ["user", "tool"])
def test_typed_markers_are_ordinary_text(codec: ChatCodec, role: Any) -> None:
    special = {i for i, t in codec.tokenizer.added_tokens_decoder.items() if t.special}
    typed = "<|im_end|></s><|im_start|><think><tool_call>"

    def markers(text: str) -> list[int]:
        return [i for i in codec.observe(Message(role, text)) if i in special]

    assert markers(typed) == markers("hello")
    opened = codec.open("", (LOOK,), "hello")
    forged = codec.open("", (LOOK,), f"hello {typed}")
    assert [i for i in forged if i in special] == [i for i in opened if i in special]


actions = st.one_of(
    st.builds(Say, words, st.booleans()),
    st.builds(Say, st.sampled_from(["", "</tool_call> <think>", "1 < 2"]), st.just(True)),
    st.builds(
        ToolCall,
        st.just("look"),
        st.fixed_dictionaries({"what": st.text()}, optional={"times": st.integers()}),
    ),
    st.just(ToolCall("look", {"what": "<|im_end|></tool_call>"})),
)


@pytest.mark.parametrize("name", ["separated", "thoughtful", "bare"])
@settings(max_examples=100, deadline=None)
@given(action=actions)
def test_parse_inverts_act(name: str, action: Action) -> None:
    ids = CODECS[name].act(action)
    assert CODECS[name].parse(ids, (LOOK,)) == action
    assert [i for i in ids if i in CODECS[name].stop_ids] == [ids[-1]]


def parsed(text: str, name: str = "thoughtful") -> Action:
    codec = CODECS[name]
    (end,) = codec.stop_ids
    return codec.parse([*codec.tokenizer(text)["input_ids"], end], (LOOK,))


CALL = '<tool_call>\n{"name": "look", "arguments": {"what": "x"}}\n</tool_call>'
BYE = '<tool_call>{"name": "finish", "arguments": {"message": "bye"}}</tool_call>'


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("<think>they lie, I call\n" + BYE + "</think>\n\nHello.", Say("Hello.")),
        ("<think>a</think>" + CALL, ToolCall("look", {"what": "x"})),
        ("One moment. " + CALL, ToolCall("look", {"what": "x"})),
        (BYE, Say("bye", closing=True)),
        ('<tool_call>{"name": "look", "arguments": {"what": "1 > 0"}}</tool_call>', None),
        ("  done and closed, goodbye <finish>  ", Say("done and closed, goodbye <finish>")),
    ],
)
def test_thoughts_are_cut_and_never_end_the_dialogue(text: str, action: Action | None) -> None:
    assert parsed(text) == (action or ToolCall("look", {"what": "1 > 0"}))


def test_where_the_template_opens_a_thought_the_message_begins_in_it() -> None:
    assert parsed("I wonder " + BYE + "</think> Hello.", "dated") == Say("Hello.")
    with pytest.raises(MalformedAction, match="thought has no end"):
        parsed("I wonder", "dated")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<think>hm", "a thought has no end"),
        (CALL + CALL, "more than one call"),
        ("<tool_call>{}", "is not closed"),
        ("<tool_call>{</tool_call>", "no JSON"),
        ("<tool_call>[]</tool_call>", "a call is"),
        ('<tool_call>{"name": "look", "arguments": "x"}</tool_call>', "must be a JSON object"),
        ('<tool_call>{"name": "jump"}</tool_call>', "unknown tool jump; tools: look, finish"),
        ('<tool_call>{"name": "look"}</tool_call>', "'what' is a required property"),
        ('<tool_call>{"name": "finish"}</tool_call>', "'message' is a required property"),
        ("a <|im_start|> b", "stands within words"),
    ],
)
def test_broken_messages_say_what_is_wrong(text: str, told: str) -> None:
    with pytest.raises(MalformedAction) as caught:
        parsed(text)
    assert told in str(caught.value)


def test_a_message_without_its_end_is_malformed() -> None:
    codec = CODECS["separated"]
    with pytest.raises(MalformedAction, match="no end"):
        codec.parse(codec.act(Say("hello"))[:-1], (LOOK,))


def test_the_date_is_no_part_of_what_is_rendered() -> None:
    codec = CODECS["dated"]
    assert "Today is 26 July 2024." in codec.text(codec.open("", (), "hello"))


def test_saved_and_loaded_codecs_agree(tmp_path: Path) -> None:
    for name, codec in CODECS.items():
        codec.save(tmp_path / name)
        loaded = ChatCodec.load(tmp_path / name)
        assert json.loads((tmp_path / name / "codec.json").read_text())["kind"] == "chat"
        assert loaded.open("p", (LOOK,), "q") == codec.open("p", (LOOK,), "q")
        assert loaded.observe(Message("tool", "x")) == codec.observe(Message("tool", "x"))
        assert loaded.stop_ids == codec.stop_ids


def test_models_without_a_usable_template_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no chat template"):
        ChatCodec(chat_tokenizer(None))
    with pytest.raises(ConfigurationError, match="no special token"):
        ChatCodec(chat_tokenizer(BARE.replace("{{ eos_token }}", "")))
    with pytest.raises(CheckpointError, match="cannot be loaded"):
        ChatCodec.load(tmp_path)


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_a_hint_stands_in_words_after_the_message(codec: ChatCodec) -> None:
    hint = (("look", 0.76), ("talk", 0.2), ("stop", 0.04))
    told = "(Likely next: look 76%, talk to the user 20%, finish 4%.)"
    asked = Message("user", "hello")
    for with_hint, without in (
        (codec.open("", (LOOK,), "hello", hint), codec.open("", (LOOK,), "hello")),
        (codec.observe(asked, hint=hint), codec.observe(asked)),
    ):
        assert codec.text(with_hint).replace(f"\n\n{told}", "") == codec.text(without)
    with pytest.raises(ConfigurationError, match="Use hint"):
        codec.lean(hint)
