"""Presets of ablations: each differs from `full` in the keys that it names, and in no others."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from progrl.config import load_config, resolved
from progrl.config.presets import FULL, differences, presets, variant
from progrl.errors import ConfigurationError

ROOT = Path(__file__).parents[2]
KNOWN = presets(ROOT)
RUN = [name for name, preset in KNOWN.items() if preset.changes]
NAMED = {
    "no_user": ["user"],
    "fixed_horizon": ["horizon"],
    "fixed_horizon_20": ["horizon"],
    "linear_horizon": ["horizon"],
    "binary_reward": ["reward.progress", "reward.efficiency", "reward.weights"],
    "fixed_weights": ["reward.weights"],
    "constant_lr": ["grpo.schedule"],
    "linear_lr": ["grpo.schedule"],
    "no_difficulty": ["curriculum.difficulty"],
    "no_memory": ["memory.store_above"],
    "no_tools": ["orchestration"],
    "random_tools": ["orchestration"],
    "equal_credit": ["grpo.credit"],
    "chain_base": ["user", "horizon", "orchestration"],
    "chain_users": ["horizon", "orchestration"],
    "mua_rl": ["reward.progress", "reward.efficiency", "reward.weights", "horizon"],
    "agentgym_rl": ["user", "horizon"],
}


def flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(tree, dict) and tree:
        return {
            k: v for key, part in tree.items() for k, v in flat(part, f"{prefix}.{key}").items()
        }
    return {prefix[1:]: tree}


@pytest.mark.parametrize("name", sorted(NAMED))
def test_a_preset_differs_in_the_named_keys_alone(name: str) -> None:
    base = load_config(ROOT / "params.yaml", "sweep")
    made = variant(base, name, KNOWN[name])
    assert list(differences(base, made)) == NAMED[name]
    # The same seen without the function under test: leaf by leaf.
    one, other = flat(resolved(base)), flat(resolved(made))
    changed = {k for k in one.keys() | other.keys() if one.get(k, ...) != other.get(k, ...)}
    assert changed
    assert all(any(f"{k}.".startswith(f"{n}.") for n in NAMED[name]) for k in changed)


@pytest.mark.parametrize("name", RUN)
def test_every_preset_changes_something_and_makes_a_claim(name: str) -> None:
    base = load_config(ROOT / "params.yaml", "sweep")
    assert differences(base, variant(base, name, KNOWN[name]))
    assert KNOWN[name].claim and KNOWN[name].about


def test_full_comes_first_and_changes_nothing() -> None:
    base = load_config(ROOT / "params.yaml", "sweep")
    assert next(iter(KNOWN)) == FULL
    assert variant(base, FULL, KNOWN[FULL]) == base


def test_what_cannot_be_run_says_why() -> None:
    base = load_config(ROOT / "params.yaml")
    for name in ("react", "toolformer"):
        with pytest.raises(ConfigurationError, match=f"{name}.*not applicable.*embedded"):
            variant(base, name, KNOWN[name])


def test_a_difference_holds_both_values() -> None:
    base = load_config(ROOT / "params.yaml")
    other = load_config(ROOT / "params.yaml", overrides=["grpo.steps=13", "domains.held_out=[]"])
    assert differences(base, other) == {
        "domains.held_out": [["airline"], []],
        "grpo.steps": [base.grpo.steps, 13],
    }
    assert differences(base, base) == {}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "configs" / "ablations", tmp_path / "configs" / "ablations")
    return tmp_path


def write(project: Path, name: str, **content: Any) -> None:
    path = project / "configs" / "ablations" / f"{name}.yaml"
    path.write_text(yaml.safe_dump(content))


def test_a_new_file_is_a_new_preset(project: Path) -> None:
    write(project, "larger_groups", about="Twice as many.", changes={"grpo": {"group": 16}})
    base = load_config(ROOT / "params.yaml")
    found = presets(project)["larger_groups"]
    assert differences(base, variant(base, "larger_groups", found)) == {"grpo.group": [8, 16]}


def test_a_change_that_changes_nothing_is_an_error(project: Path) -> None:
    changes = {"grpo": {"group": 8, "steps": 17}, "horizon": {"kind": "fixed", "turns": 9}}
    write(project, "idle", about="Idle.", changes=changes)
    with pytest.raises(ConfigurationError, match=r"grpo\.group is what the profile has already"):
        variant(load_config(ROOT / "params.yaml"), "idle", presets(project)["idle"])


def test_a_wrong_key_is_explained(project: Path) -> None:
    write(project, "wrong", about="Wrong.", changes={"grpo": {"stesp": 3}})
    with pytest.raises(ConfigurationError, match=r"preset wrong.*\n.*stesp.*'steps'"):
        variant(load_config(ROOT / "params.yaml"), "wrong", presets(project)["wrong"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"about": "Nothing."}, "has `changes` or says why"),
        ({"about": "Both.", "changes": {"seed": 2}, "not_applicable": "No."}, "no `changes`"),
        ({"changes": {"seed": 2}}, "about: Field required"),
        ({"about": "More.", "more": 1, "changes": {"seed": 2}}, "more: Extra inputs"),
        ({"about": "Odd.", "expect": "sideways", "changes": {"seed": 2}}, "expect: "),
    ],
)
def test_a_file_that_is_no_preset_is_explained(
    content: dict[str, Any], message: str, project: Path
) -> None:
    write(project, "odd", **content)
    with pytest.raises(ConfigurationError, match=rf"odd\.yaml.*{message}"):
        presets(project)


def test_without_full_there_is_nothing_to_compare_with(project: Path) -> None:
    (project / "configs" / "ablations" / "full.yaml").unlink()
    with pytest.raises(ConfigurationError, match="no preset 'full'"):
        presets(project)
