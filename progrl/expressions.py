"""Python's grammar as a reader of expressions; nothing is ever run."""

import ast
import warnings


def parsed(expression: str) -> ast.expr:
    """The tree of an expression. What Python would warn about, `3or 4`, it reads in silence.

    Raises:
        SyntaxError: it is none.
        ValueError: it holds a null character.
        RecursionError, MemoryError: it is nested too deeply.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)  # the same, in Python 3.11
        return ast.parse(expression, mode="eval").body
