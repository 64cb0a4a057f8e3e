"""`progrl config check|show`."""

import json
from pathlib import Path

import pytest
import yaml

from progrl.cli.config import leaves
from progrl.config import load_config, resolved
from tests.cli.conftest import Run


def test_check_counts_the_keys(run: Run, root: Path) -> None:
    keys = len(list(leaves(load_config(root / "params.yaml"))))
    assert run("config", "check").stdout == f"OK: {keys} keys.\n"
    assert json.loads(run("config", "check", "--json").stdout) == {"ok": True, "keys": keys}


@pytest.mark.parametrize(
    ("override", "message"),
    [("grpo.stesp=3", "did you mean 'steps'"), ("grpo.minibatches=1000", "more than grpo.tasks")],
)
def test_check_explains_what_is_wrong(override: str, message: str, run: Run) -> None:
    done = run("config", "check", "--set", override)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


def test_check_of_corrupted_params(run: Run, tmp_path: Path) -> None:
    params = tmp_path / "params.yaml"
    params.write_text("seed: [")
    done = run("config", "check", "--params", str(params))
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{params}: not valid YAML" in done.stderr


def test_show_is_the_resolved_tree(run: Run, root: Path) -> None:
    expected = resolved(load_config(root / "params.yaml", "tiny", ["grpo.steps=3"]))
    args = ("config", "show", "--profile", "tiny", "--set", "grpo.steps=3")
    assert yaml.safe_load(run(*args).stdout) == expected
    assert json.loads(run(*args, "--json").stdout) == expected


@pytest.mark.parametrize("key", ["grpo", "grpo.schedule", "domains.train", "seed"])
def test_show_a_part(key: str, run: Run, root: Path) -> None:
    part = resolved(load_config(root / "params.yaml"))
    for name in key.split("."):
        part = part[name]
    assert yaml.safe_load(run("config", "show", key).stdout) == part


def test_describing_changes_nothing_but_comments(run: Run, root: Path) -> None:
    done = run("config", "show", "--describe")
    assert yaml.safe_load(done.stdout) == resolved(load_config(root / "params.yaml"))
    keys = [line for line in done.stdout.splitlines() if not line.lstrip().startswith("#")]
    lines = done.stdout.splitlines()
    for key in keys:
        assert lines[lines.index(key) - 1].lstrip().startswith("#"), key


def test_describe_one_key(run: Run) -> None:
    done = run("config", "show", "memory.capacity", "--describe")
    assert done.stdout == "# Most patterns in M_long.\n10000\n"
    told = json.loads(run("config", "show", "memory.capacity", "--describe", "--json").stdout)
    assert told == {"memory.capacity": {"value": 10000, "meaning": "Most patterns in M_long."}}


@pytest.mark.parametrize(
    ("key", "hint"), [("grop", "'grpo'"), ("grpo.xyz", "steps"), ("seed.x", "")]
)
def test_show_a_key_that_is_not_there(key: str, hint: str, run: Run) -> None:
    done = run("config", "show", key)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"No key {key!r}" in done.stderr
    assert hint in done.stderr


def test_reference_names_every_key_in_use(run: Run, root: Path) -> None:
    written = run("config", "reference").stdout
    for key, _, meaning in leaves(load_config(root / "params.yaml")):
        name = key.removesuffix(".kind")
        assert f"| `{name}.kind: " in written if key != name else f"| `{key}` |" in written
        assert meaning in written
