"""Arithmetic rules of four numbers a, b, c, d: how they are evaluated, and those that we draw."""

import ast
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import permutations, product
from typing import Any

from progrl.expressions import parsed

Numbers = tuple[int, ...]
NAMES = "abcd"
CONSTANTS = range(2, 10)
DIGITS = 6
Value = int | float
_FUNCTIONS: dict[str, Callable[..., Any]] = {"max": max, "min": min, "abs": abs}
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: lambda base, exponent: _power(base, exponent),
}
_COMMUTES = "+*"
_LARGEST = 1e15


def _power(base: Value, exponent: Value) -> Value:
    """A power that is a number of usual size, and real."""
    value: Any = float(base) ** float(exponent)
    if isinstance(value, complex) or abs(value) > _LARGEST:
        raise OverflowError(f"{base} ** {exponent} is too large, or not real")
    exact: Value = base**exponent
    return exact


def _built(node: ast.expr) -> Callable[[Sequence[Value]], Any]:
    """The function of the four numbers that an expression stands for."""
    match node:
        case ast.Name(id=name) if name in NAMES:
            return operator.itemgetter(NAMES.index(name))
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return lambda numbers: number
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            negated = _built(inner)
            return lambda numbers: -negated(numbers)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            join, one, two = _OPERATORS[type(op)], _built(left), _built(right)
            return lambda numbers: join(one(numbers), two(numbers))
        case ast.Call(func=ast.Name(id=name), args=parts, keywords=[]) if name in _FUNCTIONS:
            function, built = _FUNCTIONS[name], [_built(part) for part in parts]
            return lambda numbers: function(*(part(numbers) for part in built))
    raise ValueError(f"{ast.unparse(node)!r} has no place in a rule")


@lru_cache(maxsize=65536)
def _function(rule: str) -> Callable[[Sequence[Value]], Any]:
    try:
        return _built(parsed(rule))
    except SyntaxError as error:
        raise ValueError(f"{rule!r} is no rule: {error}") from None


def evaluate(rule: str, numbers: Sequence[int]) -> Value:
    """The rule's value, exact where it is whole, else to `DIGITS` digits.

    Raises:
        ValueError: the rule is no arithmetic of a, b, c, d with + - * / // % ** max min abs.
        ArithmeticError: it has no value for these numbers.
    """
    value: Value = _function(rule)(numbers)
    return int(value) if value == int(value) else round(value, DIGITS)


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
