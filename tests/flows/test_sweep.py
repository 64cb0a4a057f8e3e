"""What a sweep consists of, and where each cell works."""

import shutil
from pathlib import Path

import pytest

from flows.ablate import numbers
from progrl.config import load_config
from progrl.errors import ConfigurationError
from progrl.files import read_json
from tasks.sweep import BASE, chosen, make_sweep, note_settings, prepare, share

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    shutil.copyfile(ROOT / "params.yaml", tmp_path / "params.yaml")
    return tmp_path


def test_variants_of_a_seed_share_all_but_what_they_change(project: Path) -> None:
    sweep = make_sweep("one", "sweep", ["grpo.steps=7"], project)
    full, fixed = sweep.cell(4, "full").config, sweep.cell(4, "fixed_horizon").config
    assert (full.seed, full.grpo.steps) == (4, 7)
    assert fixed == full.model_copy(update={"horizon": fixed.horizon})
    assert sweep.base(4).config == full


def test_each_cell_has_a_folder_of_its_own(project: Path) -> None:
    sweep = make_sweep("one", "sweep", (), project)
    roots = {sweep.cell(seed, name).root for seed in (1, 2) for name in ("full", "no_user")}
    roots |= {sweep.base(seed).root for seed in (1, 2)}
    assert len(roots) == 6
    assert all(root.is_relative_to(project / "outputs" / "sweeps" / "one") for root in roots)


def test_all_variants_are_evaluated_alike(project: Path) -> None:
    sweep = make_sweep("one", "sweep", (), project)
    cell, evaluation = sweep.cell(1, "binary_reward"), sweep.evaluation(1, "binary_reward")
    assert cell.config.reward.progress == 0 and evaluation.config.reward.progress > 0
    assert evaluation.root == cell.root
    full = sweep.evaluation(1, "full").config
    assert full == sweep.cell(1, "full").config and full.evaluation.compare_advice
    alone = full.evaluation.model_copy(update={"compare_advice": False})
    assert evaluation.config == full.model_copy(update={"evaluation": alone})
    prepare(cell)
    prepare(evaluation)
    for job in (cell, evaluation):
        assert load_config(project / "params.yaml", job.profile) == job.config


def test_the_configuration_on_disk_is_the_cells(project: Path) -> None:
    job = make_sweep("one", "sweep", (), project).cell(2, "agentgym_rl")
    prepare(job)
    assert load_config(project / "params.yaml", job.profile) == job.config


def test_a_cell_reads_the_shared_part_by_links_that_move_with_the_sweep(project: Path) -> None:
    sweep = make_sweep("one", "sweep", (), project)
    base, cell = sweep.folder(1, BASE), sweep.folder(1, "full")
    for name in ("data/tasks", "data/users", "models/untrained", "models/sft"):
        (base / name).mkdir(parents=True)
        (base / name / "file").write_text(name)
    share(base, cell)
    share(base, cell)
    (cell / "played" / "file").write_text("played")
    moved = project / "elsewhere"
    sweep.root.rename(moved)
    for name in ("data/tasks", "data/users", "models/untrained", "models/sft"):
        assert (moved / "seed-1" / "full" / name / "file").read_text() == name
    assert (moved / "seed-1" / BASE / "played" / "file").read_text() == "played"
    assert not (moved / "seed-1" / "full" / "models" / "grpo").exists()


def test_a_sweep_may_grow_but_not_change(project: Path) -> None:
    sweep = make_sweep("one", "sweep", (), project)
    note_settings(sweep, ["full", "no_user"], [2, 1])
    note_settings(sweep, ["full", "linear_lr"], [3])
    settings = read_json(sweep.root / "sweep.json")
    assert settings["seeds"] == [1, 2, 3]
    applicable = [n for n, told in settings["variants"].items() if "changes" in told]
    assert applicable == ["full", "linear_lr", "no_user"]
    assert settings["variants"]["no_user"]["changes"] == {
        "user": [{"kind": "scripted", "family": "a"}, {"kind": "static", "family": "a"}]
    }
    assert "embedded" in settings["variants"]["react"]["not_applicable"]

    other = make_sweep("one", "sweep", ["grpo.steps=7"], project)
    with pytest.raises(ConfigurationError, match=r"another configuration \(grpo.steps\)"):
        note_settings(other, ["full"], [1])
    note_settings(make_sweep("one", "sweep", ["tracking.kind=none"], project), ["full"], [1])
    path = project / "configs" / "ablations" / "no_user.yaml"
    path.write_text(path.read_text().replace("family: a", "family: b"))
    with pytest.raises(ConfigurationError, match="'no_user' has changed"):
        note_settings(make_sweep("one", "sweep", (), project), ["full", "no_user"], [1])


def test_variants_are_those_that_can_be_run_with_full_first(project: Path) -> None:
    sweep = make_sweep("one", "sweep", (), project)
    every = chosen(sweep, None)
    assert every[0] == "full" and "no_user" in every and "react" not in every
    assert chosen(sweep, ["no_user"]) == ["full", "no_user"]
    assert not any(sweep.known[name].group for name in every)
    userrl = chosen(sweep, ["userrl"])
    assert userrl[0] == "full" and len(userrl) == 1 + 4 * 3 + 3 + 2
    assert {sweep.known[name].group for name in userrl[1:]} == {"userrl"}
    with pytest.raises(ConfigurationError, match=r"No preset 'no_users'.*the group userrl"):
        chosen(sweep, ["no_users"])


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", ".hidden"])
def test_a_sweep_stays_in_its_folder(name: str, project: Path) -> None:
    with pytest.raises(ConfigurationError, match="name of a sweep"):
        make_sweep(name, "sweep", (), project)


def test_seeds_are_read_as_people_write_them() -> None:
    assert numbers("1,2,5-8") == [1, 2, 5, 6, 7, 8]
    for text in ("", "1,,2", "a", "1-", "2-1", "1,1", "-1"):
        with pytest.raises(ConfigurationError, match="--seeds"):
            numbers(text)
