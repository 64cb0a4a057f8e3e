"""The compact codec: markers cannot be forged, actions survive the way to ids and back."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from progrl.dialogue.compact import CompactCodec, train_tokenizer
from progrl.dialogue.messages import Action, Message, Say, ToolCall, ToolSpec
from progrl.errors import CheckpointError, ConfigurationError, MalformedAction


def spec(name: str, required: tuple[str, ...] = (), /, **properties: Any) -> ToolSpec:
    kinds = {key: {"type": kind} for key, kind in properties.items()}
    return ToolSpec(name, "", {"type": "object", "properties": kinds, "required": list(required)})


TOOLS = (
    spec("find_user", name="string", zip="string"),
    spec("set", ("count",), count="integer", price="number", urgent="boolean", ids="array"),
    spec("note", about="object", text=["string", "null"]),
)
OTHER = (spec("book flight", date="string", seats="integer"),)
TEXTS = [
    "my name is mei patel",
    "order 12345 was shipped",
    '["12","34"]',
    "please confirm, yes or no?",
]
CODEC = CompactCodec(train_tokenizer(TEXTS * 4, TOOLS, 400))

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
calls = st.one_of(
    st.builds(
        ToolCall,
        st.just("find_user"),
        st.fixed_dictionaries(
            {}, optional={"name": st.text(), "zip": st.text(alphabet="0123456789")}
        ),
    ),
    st.builds(
        ToolCall,
        st.just("set"),
        st.fixed_dictionaries(
            {"count": st.integers()},
            optional={
                "price": st.floats(allow_nan=False, allow_infinity=False),
                "urgent": st.booleans(),
                "ids": st.lists(json_values, max_size=3),
            },
        ),
    ),
    st.builds(
        ToolCall,
        st.just("note"),
        st.fixed_dictionaries(
            {"about": st.dictionaries(st.text(max_size=4), json_values, max_size=3)}
        ),
    ),
    st.builds(
        ToolCall,
        st.just("book flight"),
        st.fixed_dictionaries({}, optional={"date": st.text(), "seats": st.integers()}),
    ),
)
actions = st.one_of(calls, st.builds(Say, st.text(), st.booleans()))


@settings(max_examples=300, deadline=None)
@given(actions)
def test_parse_inverts_act(action: Action) -> None:
    ids = CODEC.act(action)
    assert CODEC.parse(ids, TOOLS + OTHER) == action
    assert set(ids) & CODEC.stop_ids == {ids[-1]}


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_text_survives_and_never_becomes_a_marker(text: str) -> None:
    low, high = CODEC.copyable
    ids = CODEC.encode(text)
    assert all(low <= token < high for token in ids)
    assert CODEC.text(ids) == text


@pytest.mark.parametrize("marker", ["<|end|>", "<|call:find_user|>", "x<|agent|>y", "<|pad|>"])
def test_typed_markers_are_ordinary_text(marker: str) -> None:
    ids = CODEC.observe(Message("user", marker))
    plain = CODEC.observe(Message("user", "hello"))
    assert (ids[0], ids[-1]) == (plain[0], plain[-1])
    assert min(ids[1:-1]) >= CODEC.copyable[0]
    assert CODEC.stop_ids.isdisjoint(ids)


def test_a_call_takes_few_tokens_and_digits_are_apart() -> None:
    ids = CODEC.act(ToolCall("find_user", {"zip": "98117"}))
    assert len(ids) == 1 + 1 + 5 + 1
    assert len(set(CODEC.encode("777"))) == 1


def test_words_are_the_same_tokens_wherever_they_stand() -> None:
    whole = CODEC.encode("name patel")
    assert whole == CODEC.encode("name") + CODEC.encode("patel")


def test_opening_names_tools_by_option_and_never_the_policy() -> None:
    brief = CODEC.open("a long policy", TOOLS, "hello")
    listing = CompactCodec(CODEC.tokenizer, list_tools=True)
    assert listing.open("another policy", TOOLS, "hello")[-len(brief) :] == brief
    assert len(listing.open("", TOOLS, "hello")) == len(brief) + 1 + len(TOOLS)
    assert "book flight" in listing.text(listing.open("", OTHER, "hello"))


def ids_of(*parts: str) -> list[int]:
    """Ids from markers ('<|...|>') and words."""
    vocabulary = CODEC.tokenizer.get_vocab()
    ids: list[int] = []
    for part in parts:
        ids += [vocabulary[part]] if part in vocabulary else CODEC.encode(part)
    return ids


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ([], "no end"),
        (ids_of("<|say|>", "hello"), "no end"),
        (ids_of("hello", "<|end|>"), "starts with"),
        (ids_of("<|say|>", "a", "<|pad|>", "b", "<|end|>"), "<|pad|> stands within words"),
        (
            ids_of("<|call|>", "cancel", "<|end|>"),
            "unknown tool cancel; tools: find_user, set, note",
        ),
        (ids_of("<|call:find_user|>", "x", "<|end|>"), "before the first argument"),
        (ids_of("<|call:find_user|>", "<|key|>", "zip", "<|end|>"), "no value"),
        (
            ids_of(
                "<|call:find_user|>", "<|key:zip|>", "1", "<|key|>", "zip", "<|is|>", "2", "<|end|>"
            ),
            "zip is given twice",
        ),
        (ids_of("<|call:set|>", "<|end|>"), "'count' is a required property"),
        (ids_of("<|call:set|>", "<|key:count|>", "many", "<|end|>"), "'many' is not of type"),
        (ids_of("<|call:set|>", "<|key:count|>", "NaN", "<|end|>"), "'NaN' is not of type"),
    ],
)
def test_broken_messages_say_what_is_wrong(ids: list[int], words: str) -> None:
    with pytest.raises(MalformedAction) as caught:
        CODEC.parse(ids, TOOLS)
    assert words in str(caught.value)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, CODEC.size - 1), max_size=12))
def test_any_ids_give_an_action_or_an_explanation(ids: list[int]) -> None:
    try:
        action = CODEC.parse([*ids, *CODEC.stop_ids], TOOLS)
    except MalformedAction as error:
        assert str(error)
    else:
        assert isinstance(action, Say | ToolCall)


def test_saved_and_loaded_codecs_agree(tmp_path: Path) -> None:
    CODEC.save(tmp_path)
    loaded = CompactCodec.load(tmp_path)
    action = ToolCall("set", {"count": 3, "ids": ["12", "34"]})
    assert loaded.act(action) == CODEC.act(action)
    assert loaded.copyable == CODEC.copyable
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"tokenizer\.json"):
        CompactCodec.load(tmp_path)


def test_training_is_deterministic_and_needs_room() -> None:
    again = train_tokenizer(TEXTS * 4, TOOLS, 400)
    assert again.to_str() == CODEC.tokenizer.to_str()
    with pytest.raises(ConfigurationError, match=r"agent\.vocabulary"):
        train_tokenizer(TEXTS, TOOLS, 260)


def test_a_hint_is_a_few_tokens_before_the_agents_turn() -> None:
    hint = (("find_user", 0.76), ("talk", 0.2), ("stop", 1.0))
    for with_hint, without in (
        (CODEC.open("", TOOLS, "hi", hint), CODEC.open("", TOOLS, "hi")),
        (
            CODEC.observe(Message("tool", "x"), True, hint),
            CODEC.observe(Message("tool", "x"), True),
        ),
    ):
        assert [*with_hint[: len(without) - 1], with_hint[-1]] == without
        written = CODEC.text(with_hint[len(without) - 1 :])
        assert written == "<|tools|><|call:find_user|>7<|say|>2<|close|>9<|agent|>"
        assert len(with_hint) == len(without) + 7
