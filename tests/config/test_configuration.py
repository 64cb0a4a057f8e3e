"""The configuration tree: complete, documented, and every key of it effective."""

import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from progrl.config import Config, find_profile, load_config, resolved
from progrl.config.base import Section
from progrl.errors import ConfigurationError


def sections() -> list[type[Section]]:
    """Every section class that the tree can hold, choices included."""
    found: dict[str, type[Section]] = {}

    def walk(kind: Any) -> None:
        if isinstance(kind, type) and issubclass(kind, Section) and kind.__name__ not in found:
            found[kind.__name__] = kind
            for field in kind.model_fields.values():
                walk(field.annotation)
        for inner in typing.get_args(kind):
            walk(inner)

    walk(Config)
    return [found[name] for name in sorted(found)]


def leaves(value: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from leaves(getattr(value, name), f"{prefix}.{name}" if prefix else name)
    else:
        yield prefix, value


@pytest.fixture(scope="module")
def params() -> Path:
    return Path(__file__).parents[2] / "params.yaml"


@pytest.mark.parametrize("section", sections(), ids=lambda s: s.__name__)
def test_every_field_is_documented(section: type[Section]) -> None:
    assert (section.__doc__ or "").strip()
    for name, field in section.model_fields.items():
        # A choice needs no text of its own: the chosen section explains it.
        assert (field.description or "").strip() or name == "kind", name


@pytest.mark.parametrize("section", sections(), ids=lambda s: s.__name__)
def test_nothing_is_decided_in_two_places(section: type[Section]) -> None:
    assert [name for name, field in section.model_fields.items() if not field.is_required()] == []


def test_params_are_complete_and_valid(params: Path) -> None:
    written = yaml.safe_load(params.read_text())
    config = load_config(params)
    assert set(written) == set(Config.model_fields)
    assert _as_json(resolved(config)) == _as_json(written)


def _as_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@pytest.mark.parametrize(
    "profile", sorted(p.stem for p in (Path(__file__).parents[2] / "configs").glob("*.yaml"))
)
def test_every_profile_is_valid_by_name_and_by_path(profile: str, params: Path) -> None:
    config = load_config(params, profile)
    assert load_config(params, str(find_profile(params, profile))) == config


def test_every_key_left_out_is_missed(params: Path, tmp_path: Path) -> None:
    for name, _ in leaves(load_config(params)):
        tree = yaml.safe_load(params.read_text())
        *path, last = name.split(".")
        part = tree
        for key in path:
            part = part[key]
        del part[last]
        cut = tmp_path / "params.yaml"
        cut.write_text(yaml.safe_dump(tree))
        # A missing `kind` is told of the choice that lacks it.
        with pytest.raises(ConfigurationError, match=name.removesuffix(".kind")):
            load_config(cut)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("grpo.stesp=3", "grpo.stesp: unknown key.*did you mean 'steps'"),
        ("gropo.steps=3", "gropo: unknown key.*did you mean 'grpo'"),
        ("horizon.dleta=2", "horizon.dleta: unknown key.*did you mean 'delta'"),
        ("horizon.turns=10", "horizon.turns: unknown key, or one that has no effect[^;]*$"),
        ("horizon.kind=fixed", "horizon.turns: missing"),
        ("horizon.kind=adaptve", "horizon: .*'adaptive'"),
        ("horizon.start=1", "horizon.start: .*greater than or equal to 2 .got 1"),
        ("grpo.kl=-0.1", "grpo.kl: .*greater than or equal to 0"),
        ("grpo.group=1", "grpo.group"),
        ("grpo.steps=many", "grpo.steps: .*integer.*got 'many'"),
        ("grpo.learning_rate=.nan", "grpo.learning_rate"),
        ("grpo.temperature=.inf", "grpo.temperature"),
        ("grpo.minibatches=1000", "grpo.minibatches: more than grpo.tasks"),
        ("sft.dialogues=100001", "sft.dialogues: more than generate.dialogues"),
        ("grpo.probe_tasks=201", "grpo.probe_tasks: more than there are"),
        ("generate.pool=999", "pool: at least as many as responses"),
        ("domains.train=[]", "train: name at least one domain"),
        ("domains.held_out=[retail]", "retail cannot be in both"),
        ("domains.options.telecom={}", "options for telecom have no effect"),
        ("evaluation.gate.benchmark=telecom", "evaluation.gate.benchmark: not one of the domains"),
        ("evaluation.gate.confidence=1", "evaluation.gate.confidence"),
        ("seed=-1", "seed: .*greater than or equal to 0"),
        ("grpo=3", "grpo: "),
        ("grpo.steps", "write it as a.b=value"),
        ("=3", "write it as a.b=value"),
        ("grpo.steps=[", "not valid YAML"),
        ("seed=2024-13-45", "not valid YAML"),
        ("domains.train=[retail,retail]", "retail is named more than once"),
        ("agent.head_dim=3", "multiple of 2"),
        ("agent.window=8", "agent.window"),
        ("horizon={kind: scaling_inter, stages: [], every: 1}", "horizon.stages"),
        ("sft.learning_rate=1e308", "sft.learning_rate"),
        ("grpo.temperature=1e-300", "grpo.temperature"),
        ("threads=100000", "threads"),
        ("domains.train=retail", "domains.train: a list is expected .got 'retail'"),
        ("sft.schedule.flat=0.95", "sft.schedule: flat: with warmup more than 1"),
        ("grpo.probe_every=151", "grpo.probe_every: more than grpo.steps"),
        ("grpo={probe_every: 151, keep: last}", "grpo.probe_every: more than grpo.steps"),
        ("grpo.probe_every=0", "grpo.probe_every"),
    ],
)
def test_wrong_overrides_are_explained(override: str, message: str, params: Path) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_config(params, overrides=[override])


def _typed(config: Config) -> list[tuple[str, Any]]:
    return [(name, v) for name, v in leaves(config) if isinstance(v, bool | int | float)]


@pytest.mark.parametrize("profile", [None, "smollm", "llm", "hint"])
def test_no_number_is_made_of_what_is_none(profile: str | None, params: Path) -> None:
    for name, value in _typed(load_config(params, profile)):
        number = "1" if isinstance(value, bool) else str(value)
        wrong = [f"'{number}'", number] if isinstance(value, bool) else [f"'{number}'", "true"]
        for other in wrong:
            with pytest.raises(ConfigurationError) as caught:
                load_config(params, profile, [f"{name}={other}"])
            told = str(caught.value).splitlines()
            assert len(told) == 2 and told[1].startswith(f"  {name}: Input should be"), told


def test_whole_numbers_are_numbers(params: Path) -> None:
    for name, value in _typed(load_config(params)):
        if isinstance(value, float) and value >= 1:
            assert load_config(params, overrides=[f"{name}={int(value)}"])
    with pytest.raises(ConfigurationError, match=r"seed: .*integer .got 1.0"):
        load_config(params, overrides=["seed=1.0"])


@pytest.mark.parametrize("text", ["1e-3", "1E-3", "+1e-3", "1.e-3", ".1e-2", "0.1e-2", "0.001"])
def test_powers_of_ten_are_numbers(text: str, params: Path) -> None:
    assert load_config(params, overrides=[f"grpo.learning_rate={text}"]).grpo.learning_rate == 0.001


def test_all_errors_are_told_at_once(params: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_config(params, overrides=["grpo.steps=0", "seed=x", "sft.btach=1"])
    assert "3 error(s)" in str(caught.value)
    for key in ("grpo.steps", "seed", "sft.btach"):
        assert f"  {key}: " in str(caught.value)


def test_overrides_win_over_profile_over_params(params: Path, tmp_path: Path) -> None:
    profile = tmp_path / "mine.yaml"
    profile.write_text("grpo: {steps: 17, group: 3}\n")
    assert load_config(params, str(profile)).grpo.steps == 17
    config = load_config(params, str(profile), ["grpo.steps=18", "grpo.steps=19"])
    assert (config.grpo.steps, config.grpo.group) == (19, 3)
    assert config.grpo.tasks == load_config(params).grpo.tasks


def test_another_kind_replaces_the_whole_choice(params: Path) -> None:
    config = load_config(params, overrides=["horizon={kind: fixed, turns: 10}"])
    assert resolved(config)["horizon"] == {"kind": "fixed", "turns": 10}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [", "not valid YAML"),
        ("- 1", "a mapping of keys"),
        ("", r"\d+ error\(s\)"),
        ("\x00", "not valid YAML"),
        ("seed: 2\nseed: 3\n", "the key 'seed' is given twice"),
        ("grpo: {steps: 1, steps: 2}\n", "the key 'steps' is given twice"),
        ("? [seed]\n: 2\n", "not valid YAML"),
        ("seed: 2024-13-45", "not valid YAML"),
        ("seed: " + "9" * 5000, "not valid YAML"),
        ("seed: " + "[" * 3000, "not valid YAML"),
    ],
)
def test_corrupted_params_are_explained(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text(content)
    with pytest.raises(ConfigurationError, match=message) as caught:
        load_config(tmp_path / "params.yaml")
    assert "params.yaml" in str(caught.value)


def test_missing_files_are_named(params: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none\.yaml: no such file"):
        load_config(tmp_path / "none.yaml")
    with pytest.raises(ConfigurationError, match=r"No profile 'cpuu'.*cpu"):
        load_config(params, "cpuu")


@settings(deadline=None)
@given(section=st.sampled_from(sorted(Config.model_fields)), key=st.from_regex(r"[a-z]{9,12}"))
def test_an_unknown_key_is_refused_wherever_it_stands(section: str, key: str) -> None:
    path = Path(__file__).parents[2] / "params.yaml"
    for name in (key, f"{section}.{key}"):
        with pytest.raises(ConfigurationError):
            load_config(path, overrides=[f"{name}=1"])


def test_the_tree_survives_being_written_and_read(params: Path, tmp_path: Path) -> None:
    config = load_config(params)
    again = tmp_path / "params.yaml"
    again.write_text(yaml.safe_dump(resolved(config)))
    assert load_config(again) == config


def test_every_key_is_read_by_something() -> None:
    """A key that no code outside of the configuration reads would silently do nothing."""
    top = Path(__file__).parents[2]
    files = [f for d in ("progrl", "flows", "tasks") for f in sorted((top / d).rglob("*.py"))]
    outside = [f for f in files if (top / "progrl" / "config") not in f.parents]
    text = "\n".join(file.read_text() for file in outside)
    names = {n for section in sections() for n in section.model_fields} - {"kind"}
    unread = [name for name in sorted(names) if not re.search(rf"[.(]{name}\b", text)]
    assert unread == []
