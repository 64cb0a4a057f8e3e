"""The reference page of the configuration, made from the models and their docstrings."""

from collections.abc import Iterator, Mapping
from typing import Any

from progrl.config.models import Config

Schema = Mapping[str, Any]

_INTRO = """\
# Configuration: every key

Written by `progrl config reference` from the models in `progrl/config/`, which decide what is
accepted. How keys are set, and what profiles are: [configuration.md](configuration.md). The values
of a run, each with its meaning: `progrl config show --describe`.

A key has no default: `params.yaml` holds all of them. Where a part has a `kind`, the rows below
`kind: NAME` are its keys with that kind; keys of other kinds are refused.
"""
_HEAD = ["| key | values | meaning |", "|---|---|---|"]
_TYPES = {"integer": "whole number", "number": "number", "boolean": "true, false"}
_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
_FORMATS = {"path": "path"}


def reference() -> str:
    """All keys with their values and meanings, as Markdown."""
    schema = Config.model_json_schema()
    defs: Mapping[str, Schema] = schema["$defs"]
    simple: list[str] = []
    parts: list[str] = []
    for name, field in schema["properties"].items():
        rows = [_row(*row) for row in _rows(name, field, defs)]
        if len(rows) == 1:
            simple += rows
        else:
            said = _text(field) or _text(_model(field["$ref"], defs))
            parts += ["", f"## {name}", "", said, "", *_HEAD, *rows[1:]]
    return "\n".join([_INTRO, "## Alone at the top", "", *_HEAD, *simple, *parts]) + "\n"


def _rows(key: str, field: Schema, defs: Mapping[str, Schema]) -> Iterator[tuple[str, str, str]]:
    """Key, values and meaning of a field, then of all that is below it."""
    if "oneOf" in field:
        kinds: Mapping[str, str] = field["discriminator"]["mapping"]
        yield f"`{key}`", "a choice by `kind`", _text(field)
        for kind, target in kinds.items():
            model = _model(target, defs)
            yield f"`{key}.kind: {kind}`", "", _text(model)
            yield from _below(key, model, defs)
    elif "$ref" in field:
        model = _model(field["$ref"], defs)
        yield f"`{key}`", "a part", _text(field) or _text(model)
        if "kind" in model["properties"]:  # the only one so far
            yield f"`{key}.kind: {model['properties']['kind']['const']}`", "", _text(model)
        yield from _below(key, model, defs)
    else:
        yield f"`{key}`", _values(field), _text(field)


def _below(key: str, model: Schema, defs: Mapping[str, Schema]) -> Iterator[tuple[str, str, str]]:
    for name, field in model["properties"].items():
        if name != "kind":
            yield from _rows(f"{key}.{name}", field, defs)


def _model(target: str, defs: Mapping[str, Schema]) -> Schema:
    return defs[target.rpartition("/")[2]]


def _values(field: Schema) -> str:
    """What a key accepts, in words."""
    if "anyOf" in field:
        return "; or ".join(_values(one) for one in field["anyOf"])
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    if field["type"] == "array":
        return f"list of {_values(field['items'])}"
    if field["type"] == "object":
        return "mapping"
    name = _FORMATS.get(field.get("format", ""), _TYPES.get(field["type"], "text"))
    bounds = [f"{sign} {field[bound]:g}" for bound, sign in _BOUNDS.items() if bound in field]
    return ", ".join([name, *bounds])


def _text(described: Schema) -> str:
    return " ".join(described.get("description", "").split())


def _row(key: str, values: str, meaning: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in (key, values, meaning)) + " |"
