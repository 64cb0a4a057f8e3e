"""Finding a domain by its name.

A distribution adds a domain by the entry point group `progrl.domains`, `name = "module:Class"`.
The class is called with its validated options, or with nothing where it declares none.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import BaseModel, ValidationError

from progrl.environments.choices import ChoiceDomain, Interface
from progrl.environments.contracts import Domain
from progrl.errors import ConfigurationError

GROUP = "progrl.domains"

# Also found where the package runs from a checkout that was not installed.
_BUILT_IN = {
    "airline": "progrl.environments.airline:Airline",
    "babyai": "progrl.benchmarks.babyai:BabyAI",
    "document_search": "progrl.benchmarks.variants:VariedDocumentSearch",
    "function": "progrl.environments.gyms.function:Function",
    "intention": "progrl.environments.gyms.intention:Intention",
    "persuade": "progrl.environments.gyms.persuade:Persuade",
    "retail": "progrl.environments.retail:Retail",
    "search": "progrl.environments.gyms.search:Search",
    "tau": "progrl.environments.gyms.tau:Tau",
    "telepathy": "progrl.environments.gyms.telepathy:Telepathy",
    "travel": "progrl.environments.gyms.travel:Travel",
    "turtle": "progrl.environments.gyms.turtle:Turtle",
}


def _targets() -> dict[str, str]:
    return _known(entry_points)


@cache
def _known(entry_points: Callable[..., Iterable[EntryPoint]]) -> dict[str, str]:
    """By name; to read what is installed takes ten milliseconds."""
    found: dict[str, EntryPoint] = {point.name: point for point in entry_points(group=GROUP)}
    return _BUILT_IN | {name: found[name].value for name in sorted(found)}


def domains() -> list[str]:
    """The names of all domains that are installed, sorted."""
    return sorted(_targets())


def plugin_sources(name: str) -> list[Path]:
    """The Python files of the package or module that adds the domain; none for progrl's own, except
    those of benchmarks, which no stage reads otherwise.

    Raises:
        ConfigurationError: there is no domain of that name, or its package is not there.
    """
    module = _target(name).partition(":")[0]
    top = module.partition(".")[0]
    if top == __name__.partition(".")[0]:
        benchmark = module.startswith(f"{top}.benchmarks.")
        return sorted((Path(__file__).parents[1] / "benchmarks").rglob("*.py")) if benchmark else []
    found = find_spec(top)
    if found is None or found.origin is None:
        raise ConfigurationError(
            f"Domain {name!r}: its package {top!r} is not installed. Install it, or take the "
            "domain out of `domains`."
        )
    origin = Path(found.origin)
    return sorted(origin.parent.rglob("*.py")) if origin.name == "__init__.py" else [origin]


def _target(name: str) -> str:
    targets = _targets()
    if name not in targets:
        raise ConfigurationError(
            f"There is no domain {name!r}. Known are: {', '.join(sorted(targets))}. A package adds "
            f"one by the entry point group {GROUP!r}."
        )
    return targets[name]


def find(name: str) -> Callable[..., Domain]:
    """The class of the domain `name`.

    Raises:
        ConfigurationError: there is none of that name, or its module cannot be imported.
    """
    target = _target(name)
    module, _, attribute = target.partition(":")
    try:
        return cast(Callable[..., Domain], getattr(import_module(module), attribute))
    except (ImportError, AttributeError) as error:
        raise ConfigurationError(
            f"Domain {name!r} ({target}) cannot be imported: {error}. Install what it needs."
        ) from error


def domain(name: str, options: Mapping[str, Any] | None = None) -> Domain:
    """The domain `name`, made with `options`, which its own model `Options` validates.

    The option `interface` is every domain's: `native`, its own tools, or `three_choice`, the one
    tool of `environments.choices`; a class may have another default, `interface`.

    Raises:
        ConfigurationError: no such domain, or an option that it does not know or accept.
    """
    made, own = find(name), dict(options or {})
    interface = own.pop("interface", getattr(made, "interface", "native"))
    if interface not in get_args(Interface):
        raise ConfigurationError(
            f"Domain {name!r}: interface is {interface!r}; it can be "
            f"{' or '.join(get_args(Interface))}."
        )
    plain = _made(name, made, own)
    return plain if interface == "native" else ChoiceDomain(plain)


def _made(name: str, made: Callable[..., Domain], options: Mapping[str, Any]) -> Domain:
    model: type[BaseModel] | None = getattr(made, "Options", None)
    if model is None:
        if options:
            raise ConfigurationError(
                f"Domain {name!r} has no options, but got: {', '.join(sorted(options))}."
            )
        return made()
    try:
        # As JSON, strictly: lists are tuples and words are paths, but `"1"` is no number.
        return made(model.model_validate_json(json.dumps(dict(options), default=str), strict=True))
    except ValidationError as error:
        known = ", ".join(sorted([*model.model_fields, "interface"]))
        wrong = "; ".join(
            f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}" for e in error.errors()
        )
        raise ConfigurationError(
            f"Domain {name!r} refuses its options ({wrong}). Its options are: {known}."
        ) from None
