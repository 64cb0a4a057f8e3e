"""Reading `params.yaml`, laying a profile over it, applying overrides, checking all of it."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from progrl.config.models import Config
from progrl.errors import ConfigurationError, nearest

Tree = dict[str, Any]


class _Loader(yaml.SafeLoader):
    """YAML 1.2's booleans and powers of ten, as DVC reads them: `off` is a word, `1e-3` a number.

    A key given twice is an error.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping, if no key is given twice: else one of the values would have no effect."""
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key.value!r} is given twice", problem_mark=key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)


# What YAML's reader raises: impossible dates and numbers too long are ValueErrors of Python's.
_BROKEN = (yaml.YAMLError, ValueError, RecursionError)
_BOOL, _FLOAT = "tag:yaml.org,2002:bool", "tag:yaml.org,2002:float"
_Loader.yaml_implicit_resolvers = {
    first: [(tag, word) for tag, word in resolvers if tag != _BOOL]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    _BOOL, re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF")
)
_Loader.add_implicit_resolver(
    _FLOAT,
    re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)[eE][-+]?[0-9]+\Z"),
    list("-+.0123456789"),
)


def load_config(
    params: Path = Path("params.yaml"), profile: str | None = None, overrides: Sequence[str] = ()
) -> Config:
    """The configuration of a run.

    Args:
        params: the complete tree.
        profile: name of a file in `configs/` beside `params`, or a path to a YAML file.
        overrides: `a.b=c`, with c read as YAML; later ones win.

    Raises:
        ConfigurationError: a file is missing or no YAML mapping, or a key is unknown or wrong.
    """
    tree = read_tree(params)
    sources = [str(params)]
    if profile is not None:
        path = find_profile(params, profile)
        tree = _lay(tree, read_tree(path))
        sources.append(str(path))
    for override in overrides:
        tree = _lay(tree, _parse(override))
        sources.append(f"--set {override}")
    return _checked(tree, " + ".join(sources))


def lay_over(config: Config, changes: Mapping[str, Any], source: str) -> Config:
    """A configuration with changes laid over it, as a profile is.

    Args:
        source: names the changes in messages.

    Raises:
        ConfigurationError: a key is unknown or wrong.
    """
    return _checked(_lay(resolved(config), changes), source)


def _checked(tree: Tree, source: str) -> Config:
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        raise ConfigurationError(_explain(error, tree, source)) from None


def resolved(config: Config) -> Tree:
    """The configuration as plain JSON values."""
    return config.model_dump(mode="json")


def find_profile(params: Path, profile: str) -> Path:
    """The file of a profile, by name or by path; ConfigurationError if there is none."""
    if profile.endswith((".yaml", ".yml")):
        return Path(profile)
    folder = params.parent / "configs"
    path = folder / f"{profile}.yaml"
    if not path.exists():
        known = sorted(p.stem for p in folder.glob("*.yaml"))
        raise ConfigurationError(
            f"No profile {profile!r} in {folder}: there are {', '.join(known) or 'none'}."
        )
    return path


def read_tree(path: Path) -> Tree:
    """The mapping in a YAML file; ConfigurationError if there is none."""
    try:
        tree = _parsed(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(
            f"{path}: no such file. Run in the project's folder, or name the file with --params."
        ) from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror}).") from None
    except (*_BROKEN, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path}: not valid YAML: {' '.join(str(error).split())}"
        ) from None
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise ConfigurationError(f"{path}: a mapping of keys was expected at the top.")
    return tree


def _parsed(text: str) -> Any:
    """The value of a YAML document, made of plain values alone."""
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


def _parse(override: str) -> Tree:
    path, equals, value = override.partition("=")
    keys = [key.strip() for key in path.split(".")]
    if not equals or not all(keys):
        raise ConfigurationError(f"--set {override}: write it as a.b=value.")
    try:
        tree: Any = _parsed(value)
    except _BROKEN:
        raise ConfigurationError(f"--set {override}: {value!r} is not valid YAML.") from None
    for key in reversed(keys):
        tree = {key: tree}
    return dict(tree)


def _lay(under: Tree, over: Mapping[str, Any]) -> Tree:
    """`over` laid on `under`; where `kind` changes, the whole mapping is replaced."""
    result = dict(under)
    for key, value in over.items():
        old = result.get(key)
        if isinstance(old, dict) and isinstance(value, Mapping):
            same_kind = "kind" not in value or value["kind"] == old.get("kind")
            result[key] = _lay(old, value) if same_kind else dict(value)
        else:
            result[key] = value
    return result


def _explain(error: ValidationError, tree: Tree, source: str) -> str:
    lines = [f"The configuration ({source}) has {error.error_count()} error(s):"]
    for item in error.errors(include_url=False):
        path = _path(item["loc"], tree)
        message = item["msg"].removeprefix("Value error, ")
        if item["type"] == "extra_forbidden":
            message = "unknown key, or one that has no effect with the chosen kind"
            known = _known_keys()
            meant = "" if path[-1] in known else nearest(path[-1], known)
            message += f"; {meant}" if meant else ""
        elif item["type"] == "missing":
            message = "missing"
        elif item["type"] == "tuple_type":
            message = f"a list is expected (got {item['input']!r})"
        else:
            message += f" (got {item['input']!r})" if _short(item["input"]) else ""
        lines.append(f"  {': '.join(filter(None, ['.'.join(path), message]))}")
    return "\n".join(lines)


def _path(location: Sequence[str | int], tree: Any) -> list[str]:
    """Keys as the user writes them: without the kinds that pydantic puts between them."""
    path: list[str] = []
    skipped = False
    for part in location:
        if isinstance(tree, Mapping) and part == tree.get("kind") and not skipped:
            skipped = True
            continue
        path.append(str(part))
        tree = tree.get(part) if isinstance(tree, Mapping) else None
        skipped = False
    return path


def _short(value: Any) -> bool:
    return isinstance(value, str | int | float | bool) or value is None


def _known_keys() -> list[str]:
    keys: set[str] = set()

    def walk(schema: Any) -> None:
        if isinstance(schema, Mapping):
            keys.update(schema.get("properties", {}))
            for value in schema.values():
                walk(value)
        elif isinstance(schema, list):
            for value in schema:
                walk(value)

    walk(Config.model_json_schema())
    return sorted(keys)
