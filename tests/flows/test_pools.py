"""The templates of work pools are whole: what is used is declared, what is declared is used."""

import json
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

TEMPLATES = sorted((ROOT / "configs" / "pools").glob("*.json"))


@pytest.mark.parametrize("file", TEMPLATES, ids=lambda f: f.stem)
def test_variables_are_declared_with_values_that_fit(file: Path) -> None:
    template = json.loads(file.read_text())
    declared = template["variables"]["properties"]
    used = set(re.findall(r"\{\{ (\w+) \}\}", json.dumps(template["job_configuration"])))
    assert used == set(declared)
    assert {"command", "env"} <= used
    kinds = {"string": str, "integer": int, "object": dict, "array": list, "null": type(None)}
    for name, variable in declared.items():
        given = variable["type"]
        allowed = given if isinstance(given, list) else [given]
        assert isinstance(variable["default"], tuple(kinds[kind] for kind in allowed)), name
        assert variable["description"]


def test_there_is_one_for_each_place_a_flow_can_run_in() -> None:
    assert [file.stem for file in TEMPLATES] == ["docker", "kubernetes", "process"]
