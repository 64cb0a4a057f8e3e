"""Expressions that models write are read in silence: a run's log holds what the run says."""

import ast
import contextlib
import warnings

import pytest

from progrl.environments.service.tools import Refusal, arithmetic
from progrl.expressions import parsed


@pytest.mark.parametrize("text", ["3or 4", "0x1for x in y", "2 is 2", '"\\d"', "1 (2)"])
def test_no_warning_of_python_is_heard(text: str) -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        with contextlib.suppress(SyntaxError):
            parsed(text)
    assert heard == []


def test_a_tool_refuses_it_all_the_same() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(Refusal, match="cannot compute 3or 4"):
            arithmetic("3or 4")


def test_the_tree_is_pythons() -> None:
    assert ast.dump(parsed("1 + 2 * 3")) == ast.dump(ast.parse("1 + 2 * 3", mode="eval").body)
