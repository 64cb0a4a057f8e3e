import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from progrl.config import load_config
from progrl.environments import registry
from progrl.environments.registry import _BUILT_IN, domain, domains, find, plugin_sources
from progrl.environments.retail import Retail
from progrl.errors import ConfigurationError
from progrl.stages.base import find_stage, input_hash


def test_finds_the_built_in_domains_by_name() -> None:
    assert {"airline", "retail"} <= set(domains())
    assert domains() == sorted(domains())
    assert find("retail") is Retail
    assert domain("retail").name == "retail"
    assert domain("airline").name == "airline"


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match=r"'retial'.*airline.*retail"):
        domain("retial")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"goal_change": 0.1}, "goal_change"),
        ({"goal_change_rate": 1.5}, "goal_change_rate"),
        ({"tool_failure_rate": -0.1}, "tool_failure_rate"),
        ({"levels": [0]}, "levels"),
        ({"levels": []}, "levels"),
    ],
)
def test_a_wrong_option_is_refused_by_name(options: dict[str, object], named: str) -> None:
    with pytest.raises(ConfigurationError, match=named):
        domain("retail", options)


def test_levels_and_rates_are_kept_to() -> None:
    made = domain("retail", {"levels": [3, 5], "goal_change_rate": 1.0, "tool_failure_rate": 0.0})
    stream = made.tasks("train", 1)
    tasks = [next(stream) for _ in range(40)]
    assert {task.level for task in tasks} == {3, 5}
    assert not any("failure" in task.schedule for task in tasks)
    # Those who report a lost order have nothing to think twice about.
    assert all("change" in task.schedule for task in tasks if task.family != "lost")


class Bare:
    name = "bare"


class Optioned:
    class Options(BaseModel):
        size: int

    def __init__(self, options: Options) -> None:
        self.size = options.size


def _points(monkeypatch: pytest.MonkeyPatch, **targets: str) -> None:
    points = [EntryPoint(name, value, registry.GROUP) for name, value in targets.items()]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)


def test_other_distributions_add_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    _points(monkeypatch, bare=f"{__name__}:Bare", optioned=f"{__name__}:Optioned")
    assert domains() == sorted([*_BUILT_IN, "bare", "optioned"])
    assert domain("bare").name == "bare"
    made = domain("optioned", {"size": 3})
    assert isinstance(made, Optioned)
    assert made.size == 3
    with pytest.raises(ConfigurationError, match="no options"):
        domain("bare", {"size": 3})


@pytest.mark.parametrize("size", [True, "3", 3.0, None])
def test_options_are_of_the_type_that_they_have(size: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _points(monkeypatch, optioned=f"{__name__}:Optioned")
    with pytest.raises(ConfigurationError, match=r"refuses its options .size: "):
        domain("optioned", {"size": size})
    with pytest.raises(ConfigurationError, match=r"refuses its options .tool_failure_rate: "):
        domain("retail", {"tool_failure_rate": "0.5"})
    assert domain("retail", {"tool_failure_rate": 1, "levels": [1, 2]})


def test_without_installed_metadata_the_built_in_ones_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _points(monkeypatch)
    assert domain("retail").name == "retail"


def test_a_domain_that_cannot_be_imported_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    _points(monkeypatch, gone="no_such_package:Gone")
    with pytest.raises(ConfigurationError, match="no_such_package:Gone"):
        domain("gone")


def test_a_plug_ins_sources_decide_whether_a_stage_runs_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    module = tmp_path / "plugged_in.py"
    module.write_text("class Plugged: ...\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    _points(monkeypatch, plugged="plugged_in:Plugged", gone="no_such_package:Gone")
    assert plugin_sources("retail") == []
    assert plugin_sources("plugged") == [module]
    with pytest.raises(ConfigurationError, match="no_such_package"):
        plugin_sources("gone")

    config = load_config(overrides=["domains.held_out=[plugged]"])
    stage = find_stage("generate")
    before = input_hash(stage, config, tmp_path)
    assert input_hash(stage, config, tmp_path) == before
    module.write_text("class Plugged: name = 'plugged'\n")
    assert input_hash(stage, config, tmp_path) != before


def test_looking_up_a_domain_imports_no_torch() -> None:
    code = (
        "import sys; from progrl.environments.registry import domain; domain('retail'); "
        "domain('airline'); sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
