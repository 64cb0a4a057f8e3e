import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from progrl.dialogue.acts import mentions, normal


@pytest.mark.parametrize(
    ("text", "value", "stands"),
    [
        ("order 12 is here", "12", True),
        ("order 12.", "12", True),
        ("order 12.5", "12", False),
        ("order 312", "12", False),
        ("1.12", "12", False),
        ("312 and 12", "12", True),
        ("to 12  Oak , please", "12 oak", True),
        ("card-22", "22", True),
        ("", "12", False),
    ],
)
def test_a_value_is_a_whole_word(text: str, value: str, stands: bool) -> None:
    assert mentions(text, value) == stands


@given(st.text("a1.2 _-é²", max_size=12), st.text("a1.2 _-é²", max_size=3))
def test_as_the_pattern_that_defines_it(text: str, value: str) -> None:
    pattern = rf"(?<![\w.]){re.escape(normal(value))}(?!\w|\.\d)"
    assert mentions(text, value) == bool(re.search(pattern, normal(text)))
