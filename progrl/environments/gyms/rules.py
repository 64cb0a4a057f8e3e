"""Arithmetic rules of four numbers a, b, c, d: how they are evaluated, and those that we draw."""

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import permutations, product
from types import CodeType
from typing import Any

Numbers = tuple[int, ...]
NAMES = "abcd"
CONSTANTS = range(2, 10)
_FUNCTIONS: dict[str, Callable[..., Any]] = {"max": max, "min": min, "abs": abs}
_PARTS: tuple[type[ast.AST], ...] = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Call, ast.Load)
_PARTS += (ast.USub, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod)
_PARTS += (ast.Name, ast.Constant)
_COMMUTES = "+*"


@lru_cache(maxsize=65536)
def _compiled(rule: str) -> CodeType:
    tree = ast.parse(rule, mode="eval")
    for node in ast.walk(tree):
        known = isinstance(node, _PARTS)
        if isinstance(node, ast.Name):
            known = node.id in NAMES or node.id in _FUNCTIONS
        if isinstance(node, ast.Constant):
            known = type(node.value) in (int, float)
        if not known:
            raise ValueError(f"{rule!r} is no rule: {ast.unparse(node)!r} has no place in one")
    return compile(tree, "rule", "eval")


def evaluate(rule: str, numbers: Sequence[int]) -> int | float:
    """The rule's value, exact where it is whole.

    Raises:
        ValueError: the rule is no arithmetic of a, b, c, d with + - * / // % max min abs.
        ArithmeticError: it has no value for these numbers.
    """
    given = dict(zip(NAMES, numbers, strict=True))
    value: int | float = eval(_compiled(rule), {"__builtins__": {}, **_FUNCTIONS}, given)
    return int(value) if value == int(value) else value


def _joined(left: Sequence[str], right: Sequence[str]) -> Iterator[str]:
    for x, op, y in product(left, "+-*", right):
        yield f"{x} {op} {y}"


def _pairs() -> dict[str, list[str]]:
    """For each pair of different names, in brackets, the ways to join them."""
    return {
        x + y: [f"({x} {op} {y})" for op in "+-*" if x < y or op not in _COMMUTES]
        for x, y in permutations(NAMES, 2)
    }


@cache
def rules(family: str) -> tuple[str, ...]:
    """All rules of a family: pair, triple, four, extreme or constant."""
    pairs = _pairs()
    made: list[str] = []
    for names in permutations(NAMES):
        w, x, y, z = names
        two, rest = pairs[w + x], pairs[y + z]
        high = [f"{name}({w}, {x})" for name in ("max", "min") if w < x]
        match family:
            case "pair":
                made += [pair[1:-1] for pair in two]
            case "triple":
                made += _joined(two, [y])
            case "four":
                made += _joined(two, rest)
            case "extreme":
                made += [*_joined(high, [y]), *_joined(high, rest)]
            case "constant":
                constants = [str(k) for k in CONSTANTS]
                made += _joined([f"({r})" for r in _joined(two, [y])], constants)
                made += _joined(two, [f"({y} {op} {k})" for op in "+-*" for k in constants])
    return tuple(dict.fromkeys(made))
