"""Ablations as presets: `configs/ablations/NAME.yaml`, a file each, laid over a profile."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from progrl.config.base import Section
from progrl.config.load import Tree, lay_over, read_tree, resolved
from progrl.config.models import Config
from progrl.errors import ConfigurationError

FULL = "full"
"""The preset that all others differ from: it changes nothing."""


class Preset(Section):
    """A variant of the method.

    The one part of the configuration with defaults: what a file leaves out, its variant lacks.
    """

    about: str
    """What is different, in a sentence."""
    claim: str = ""
    """What the comparison with `full` decides, in a sentence."""
    expect: Literal["below", "above"] = "below"
    """Where the variant's figure lies against that of `full`, if the claim holds."""
    changes: Mapping[str, Any] = Field(default_factory=dict)
    """The keys in which it differs, as in a profile."""
    group: str = ""
    """The sweep that it belongs to; "" is the one of the method's own parts."""
    not_applicable: str = ""
    """Why it cannot be run; then it has no changes."""
    paper: Mapping[str, Any] = Field(default_factory=dict)
    """The paper's own figures, by metric: [full, variant]."""


def presets(project: Path) -> dict[str, Preset]:
    """All presets by name, `full` first.

    Raises:
        ConfigurationError: a file is no preset, or there is no `full`.
    """
    folder = project / "configs" / "ablations"
    found = {path.stem: _read(path) for path in sorted(folder.glob("*.yaml"))}
    if FULL not in found:
        raise ConfigurationError(f"{folder}: no preset {FULL!r}, from which all others differ.")
    return {FULL: found.pop(FULL), **found}


def _read(path: Path) -> Preset:
    try:
        preset = Preset.model_validate(read_tree(path))
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, item['loc'])) or 'the file'}: {item['msg']}"
            for item in error.errors(include_url=False)
        )
        raise ConfigurationError(
            f"{path}: not a preset ({wrong}). It has the keys {', '.join(Preset.model_fields)}."
        ) from None
    if (path.stem == FULL) == bool(preset.changes or preset.not_applicable):
        raise ConfigurationError(
            f"{path}: a preset has `changes` or says why it is `not_applicable`; {FULL!r} alone "
            "changes nothing."
        )
    if preset.changes and preset.not_applicable:
        raise ConfigurationError(f"{path}: what is not applicable has no `changes`.")
    return preset


def variant(base: Config, name: str, preset: Preset) -> Config:
    """The configuration of a variant.

    Raises:
        ConfigurationError: the preset is not applicable, its changes are wrong, or one of them
            changes nothing in this base.
    """
    if preset.not_applicable:
        raise ConfigurationError(f"Preset {name!r} is not applicable: {preset.not_applicable}")
    config = lay_over(base, preset.changes, f"preset {name}")
    changed = differences(base, config)
    for key in _leaves(preset.changes, resolved(base)):
        if not any(_within(key, one) or _within(one, key) for one in changed):
            raise ConfigurationError(
                f"Preset {name!r}: {key} is what the profile has already, so it changes nothing."
            )
    return config


def differences(a: Config, b: Config) -> dict[str, list[Any]]:
    """The resolved difference: for each key in which two configurations differ, both values.

    Where a choice's `kind` differs, the choice as a whole is the difference.
    """
    return dict(_differ(resolved(a), resolved(b), ""))


def _differ(a: Tree, b: Tree, prefix: str) -> "list[tuple[str, list[Any]]]":
    found: list[tuple[str, list[Any]]] = []
    for key in dict.fromkeys([*a, *b]):
        one, other, name = a.get(key), b.get(key), f"{prefix}{key}"
        if isinstance(one, dict) and isinstance(other, dict) and _alike(one, other):
            found += _differ(one, other, f"{name}.")
        elif one != other:
            found.append((name, [one, other]))
    return found


def _leaves(changes: Mapping[str, Any], base: Any, prefix: str = "") -> list[str]:
    """The keys that changes name; a choice of another kind counts as one."""
    names: list[str] = []
    for key, value in changes.items():
        under = base.get(key) if isinstance(base, Mapping) else None
        if (
            isinstance(value, Mapping)
            and isinstance(under, Mapping)
            and ("kind" not in value or _alike(value, under))
        ):
            rest = {k: v for k, v in value.items() if k != "kind"}
            names += _leaves(rest, under, f"{prefix}{key}.") or [f"{prefix}{key}"]
        else:
            names.append(f"{prefix}{key}")
    return names


def _alike(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Not two choices of different kinds."""
    return bool(a.get("kind") == b.get("kind"))


def _within(key: str, other: str) -> bool:
    return key == other or key.startswith(f"{other}.")
