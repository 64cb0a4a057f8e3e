"""`progrl config check|show|reference`: is the configuration right, what is it, what may it be?"""

import textwrap
from collections.abc import Iterator
from typing import Annotated, Any

import typer
import yaml
from pydantic import BaseModel
from rich.text import Text

from progrl.cli.command import Result, Shared, command
from progrl.config import Config, resolved
from progrl.config.reference import reference as written
from progrl.errors import ConfigurationError, nearest

WIDTH = 98


def register(app: typer.Typer) -> None:
    """Add the group to the program."""
    app.add_typer(group)


group = typer.Typer(name="config", help="The configuration tree.", no_args_is_help=True)


@command(group, "check", "config check", "config check --profile cpu --set grpo.steps=20")
def check(shared: Shared) -> Result:
    """Check every key, and what they mean together."""
    keys = len(list(leaves(shared.config())))
    return Result({"ok": True, "keys": keys}, f"OK: {keys} keys.")


@command(group, "show", "config show grpo", "config show --describe horizon.delta")
def show(
    shared: Shared,
    key: Annotated[str | None, typer.Argument(help="A part of the tree, as a.b.")] = None,
    describe: Annotated[bool, typer.Option("--describe", help="Say what each key means.")] = False,
) -> Result:
    """Show the configuration as a run would use it, as YAML."""
    config = shared.config()
    value, meaning = _find(config, key) if key else (config, "")
    plain = _plain(resolved(config), key)
    if not describe:
        return Result(plain, Text(_yaml(plain)))
    told = {name: {"value": v, "meaning": text} for name, v, text in leaves(value, key or "")}
    if not isinstance(value, BaseModel):
        told = {str(key): {"value": plain, "meaning": meaning}}
    lines = _comment(meaning, "") if meaning else []
    lines += _described(value) if isinstance(value, BaseModel) else [_yaml(plain)]
    return Result(told, Text("\n".join(lines)))


@command(group, "reference", "config reference", configured=False, json=False)
def reference(shared: Shared) -> Result:
    """Write the reference of all keys and their values, as Markdown."""
    typer.echo(written(), nl=False)
    return Result(None)


def leaves(section: Any, prefix: str = "") -> Iterator[tuple[str, Any, str]]:
    """Full name, value and meaning of each key that holds a value, in the order of the models."""
    if not isinstance(section, BaseModel):
        return
    for name in type(section).model_fields:
        full = f"{prefix}.{name}" if prefix else name
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from leaves(value, full)
        else:
            yield full, _plain(section.model_dump(mode="json"), name), _meaning(section, name)


def _meaning(section: BaseModel, name: str) -> str:
    """What a key means; the kind of a choice is explained by the chosen model itself."""
    described = type(section).model_fields[name].description
    return " ".join((described or type(section).__doc__ or "").split())


def _find(config: Config, key: str) -> tuple[Any, str]:
    value: Any = config
    meaning = ""
    for part in key.split("."):
        names = list(type(value).model_fields) if isinstance(value, BaseModel) else []
        if part not in names:
            hint = nearest(part, names) or f"there are {', '.join(names)}."
            raise ConfigurationError(f"No key {key!r} in the configuration; {hint}")
        meaning = _meaning(value, part)
        value = getattr(value, part)
    return value, meaning


def _plain(tree: Any, key: str | None) -> Any:
    for part in key.split(".") if key else ():
        tree = tree[part]
    return tree


def _yaml(value: Any, flow: bool = False) -> str:
    text = yaml.safe_dump(
        value, sort_keys=False, allow_unicode=True, width=WIDTH, default_flow_style=flow
    )
    return text.removesuffix("...\n").rstrip()


def _comment(text: str, indent: str) -> list[str]:
    prefix = f"{indent}# "
    return textwrap.wrap(text, WIDTH, initial_indent=prefix, subsequent_indent=prefix)


def _described(section: BaseModel, indent: str = "") -> list[str]:
    """YAML lines of a section, each key under a comment that says what it means."""
    lines: list[str] = []
    for name in type(section).model_fields:
        lines += _comment(_meaning(section, name), indent)
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            lines += [f"{indent}{name}:", *_described(value, indent + "  ")]
        else:
            plain = section.model_dump(mode="json")[name]
            text = " ".join(_yaml(plain, flow=True).split())
            lines.append(f"{indent}{name}: {text}")
    return lines
