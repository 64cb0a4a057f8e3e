"""Recognising, by rule, what a sentence does: asking, confirming, affirming.

Users, environments and metrics all read words with these functions, so that they never disagree
about what was said.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

_CONFIRM = re.compile(
    r"\b(confirm|proceed|go ahead|is (that|this) (ok|okay|right|correct|fine)|"
    r"(shall|should|may|can) i (do|make|cancel|return|exchange|change|update|book|continue)|"
    r"yes or no|ok to|okay to|do you want me to|would you like me to)\b"
)
_YES = re.compile(
    r"^\W*(yes|yeah|yep|yup|sure|ok|okay|right|correct|please do|do it|go ahead|confirmed|"
    r"i confirm|sounds good|that is right|that's right|perfect|absolutely|fine|exactly)\b(?! not\b)"
)
_ASK = re.compile(
    r"\?|\b(what|which|where|who|how|why|could you|can you|please (give|tell|share|send|provide)|"
    r"may i have|i need|need your|tell me)\b"
)
_OFFER = re.compile(
    r"\b(how (can|may) i help|what (can|may) i do|what do you (want|need)|what would you like|"
    r"what else|(any|some)thing (else|more)|is that all|all you need)\b"
)
_PROMISE = re.compile(
    r"\b(i will|i'll|i am going to|let me|one moment|a moment|one second|please wait|hold on|"
    r"bear with me|just a minute)\b"
)
_REPORT = re.compile(
    r"\b(done|finished|complete|completed|all set|taken care of|has been|have been)\b"
)


@lru_cache(maxsize=65536)
def normal(text: str) -> str:
    """Lower case, single spaces: what cues and values are compared in."""
    return " ".join(text.lower().split())


@lru_cache(maxsize=65536)
def asks_confirmation(text: str) -> bool:
    """The speaker asks the user to agree to an action."""
    return bool(_CONFIRM.search(normal(text)))


@lru_cache(maxsize=65536)
def affirms(text: str) -> bool:
    """The speaker agrees."""
    return bool(_YES.search(normal(text)))


@lru_cache(maxsize=65536)
def asks(text: str) -> bool:
    """The speaker asks for something."""
    return bool(_ASK.search(normal(text)))


@lru_cache(maxsize=65536)
def offers(text: str) -> bool:
    """The speaker asks what else there is to do, and for no fact."""
    return bool(_OFFER.search(normal(text)))


@lru_cache(maxsize=65536)
def promises(text: str) -> bool:
    """The speaker is about to do something, and has not done it yet."""
    return bool(_PROMISE.search(normal(text)))


@lru_cache(maxsize=65536)
def reports(text: str) -> bool:
    """The speaker says that something is done."""
    return bool(_REPORT.search(normal(text)))


@lru_cache(maxsize=65536)
def mentions(text: str, value: str) -> bool:
    """`value` stands in `text` as a whole word: `12` is not mentioned by `312` nor by `12.50`."""
    text, value = normal(text), normal(value)
    at = text.find(value)
    while at >= 0:
        before, after = text[:at][-1:], text[at + len(value) :][:2]
        inside = before == "." or _is_word(before)
        if not (inside or _is_word(after[:1]) or (after[:1] == "." and after[1:].isdecimal())):
            return True
        at = text.find(value, at + 1)
    return False


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def contains(text: str, phrases: Sequence[str]) -> bool:
    """One of the lower-case phrases stands in `text`, bounded by non-letters."""
    return any(mentions(text, phrase) for phrase in phrases)
