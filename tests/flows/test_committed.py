"""The table of the sweep that stands in the repository comes out again."""

import subprocess
import sys
from pathlib import Path

import pytest

from progrl.files import read_json
from progrl.tracking.provenance import machine
from tests.flows.toys import ROOT, copy_project, environment, table

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

SEED, VARIANT = 1, "no_tools"
CELL = f"""
from tasks.cell import make_base, make_cell
from tasks.sweep import make_sweep, note_settings

given = ("again", "sweep", ["tracking.kind=none"])
note_settings(make_sweep(*given), ["full", "{VARIANT}"], [{SEED}])
for made in (make_base(*given, {SEED}, None), make_cell(*given, {SEED}, "{VARIANT}", None)):
    assert not made.code, made.message
"""


def test_a_cell_of_the_committed_table_comes_out_the_same(tmp_path: Path) -> None:
    """To the last byte of the results on the kind of machine that made the table. On another,
    whose rounding is another, as near as 200 tasks let it be."""
    committed = read_json(ROOT / "metrics" / "ablations.json")
    before = committed["variants"][VARIANT]
    place = before["seeds"].index(SEED)
    copy_project(tmp_path)
    call = [sys.executable, "-c", CELL]
    done = subprocess.run(call, cwd=tmp_path, env=environment(tmp_path), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    again = table(tmp_path, "again")["variants"][VARIANT]
    assert again["changes"] == before["changes"]
    if machine() == committed["machine"]:
        assert again["results_by_seed"] == [before["results_by_seed"][place]]
        assert again["success_by_seed"] == [before["success_by_seed"][place]]
    else:
        assert again["success_by_seed"] == pytest.approx(
            [before["success_by_seed"][place]], abs=0.15
        )
