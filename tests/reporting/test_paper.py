"""The paper's figures beside ours, on made-up sweeps worked by hand."""

import json
from dataclasses import replace

import pytest

from progrl.config import load_config
from progrl.evaluation.ablations import ablations
from progrl.evaluation.sweep import read_sweep
from progrl.files import read_json, write_json
from progrl.reporting.artifacts import write_artifacts
from progrl.reporting.material import StageTime
from progrl.reporting.page import paper_figures, render
from progrl.reporting.paper import direction, measured, minus_full, pairs, paper
from progrl.reporting.paper_sweep import contributions, distribution
from progrl.reporting.paper_tables import claims, paper_tables, theory
from progrl.reporting.paper_training import improvement, shares, time_shares
from progrl.reporting.sources import gather
from tests.evaluation.test_ablations import FAST, FULL, SLOW, STATIC, rows, write_cell, write_sweep

from .run import grpo_row, write_run
from .test_page import Page


@pytest.fixture(scope="module")
def material(tmp_path_factory, request):
    root = tmp_path_factory.mktemp("run")
    config = load_config(request.config.rootpath / "params.yaml")
    write_run(root, config)
    return gather(root, root, config)


@pytest.fixture(scope="module")
def swept(tmp_path_factory, material):
    root = tmp_path_factory.mktemp("sweep")
    names = (
        *("chain_base", "chain_users", "no_tools", "fixed_horizon"),
        *("binary_reward", "mua_rl", "constant_lr"),
    )
    write_sweep(root, [1, 2, 3], *names)
    for seed in (1, 2, 3):
        write_cell(root / f"seed-{seed}" / "full", seed, FULL[seed], rows(FAST, 100))
        for name in ("no_user", *names):
            write_cell(root / f"seed-{seed}" / name, seed, STATIC[seed], rows(SLOW, 200))
    return replace(material, ablations=ablations(read_sweep(root), 0.95))


def figure(mean, low=None, high=None):
    return {"mean": mean, "low": low, "high": high}


@pytest.mark.parametrize(
    ("stated", "ours", "word"),
    [
        (-10, figure(-0.2, -0.3, -0.1), "same"),
        (-10, figure(0.2, 0.1, 0.3), "opposite"),
        (10, figure(0.2, -0.1, 0.5), "same, undecided"),
        (10, figure(0.2, 0.0, 0.5), "same, undecided"),
        (10, figure(-0.2), "opposite, without an interval"),
        (10, figure(0.0, -0.1, 0.1), "no difference"),
        (10, figure(None), "not measured"),
        (10, None, "not measured"),
    ],
)
def test_directions(stated, ours, word):
    assert direction(stated, ours) == word


def test_the_paper_is_restated_with_its_contradictions():
    stated = paper()
    assert stated["benchmarks"]["TAU-Bench"] == {
        "full": 76.3, "baseline": 58.7, "no_user": 58.9, "constant_lr": 68.9
    }  # fmt: skip
    assert sum(stated["time_shares"].values()) == 100
    stability = [p.other for p in pairs() if (p.variant, p.ours) == ("fixed_horizon", "stability")]
    assert stability == [67.8, 72.8]  # table 2's text against table 4
    assert len(stated["inconsistencies"]) == 8
    assert {pair.table for pair in pairs()} == {1, 2, 3, 4, 5, 6}


def test_figures_of_the_sweep_by_name(swept):
    given = (swept.ablations, swept.headline)
    # By hand in the tests of the sweep's table: 2/3 against 1/4, in pairs -0.41667.
    assert measured(*given, "full", "success")["mean"] == pytest.approx(2 / 3)
    minus = minus_full(*given, "no_user", "success")
    assert minus["mean"] == pytest.approx(-0.41667, abs=1e-4) and minus["high"] < 0
    assert minus_full(*given, "no_user", "held_out")["mean"] == 0
    # 0.5 against 0.25, not in pairs.
    assert minus_full(*given, "no_user", "learning_efficiency") == figure(pytest.approx(-0.25))
    assert minus_full(*given, "no_user", "optimisation_efficiency")["mean"] == pytest.approx(-0.2)
    # 0.5 held out of 2/3, where the lower bound of success is 0.308; of 0.25 it is 0.25.
    assert measured(*given, "full", "retention") == figure(pytest.approx(0.75))
    assert minus_full(*given, "react", "success") is None
    assert measured(*given, "random_tools", "retention") is None


def test_rows_of_too_few_seeds_are_not_shown(swept):
    table = json.loads(json.dumps(swept.ablations))
    table["variants"]["no_user"]["shown"] = False
    assert measured(table, swept.headline, "no_user", "success") is None
    third = paper_tables(replace(swept, ablations=table))[2]
    assert {row[-1] for row in third.rows} == {"not measured"}


def test_the_six_tables(swept):
    tables = paper_tables(swept)
    assert [table.number for table in tables] == [1, 2, 3, 4, 5, 6]
    assert all(len(row) == len(table.head) for table in tables for row in table.rows)
    first = {row["method"]: row for row in tables[0].records()}
    assert first["full"]["ours: retail"].startswith("0.67 [")
    assert first["no user"]["paper: TAU-Bench"] == "58.9%"
    assert first["no user"]["paper: BFCL v3 multi-turn"] == ""
    assert first["react"]["ours: retail"] == "not applicable"
    third = {row["metric"]: row for row in tables[2].records()}
    assert third["success on TAU2-Bench"]["direction"] == "same"
    assert third["success on WebArena"]["direction"] == "no difference"
    sixth = {row["metric"]: row for row in tables[5].records()}
    assert sixth["optimisation efficiency"]["ours: full"] == ""
    assert sixth["optimisation efficiency"]["direction"] == "same"
    fifth = {row["metric"]: row for row in tables[4].records()}
    assert fifth["performance variance"]["direction"] == "no difference"


def test_without_a_sweep_the_full_method_is_this_run(material):
    tables = paper_tables(material)
    second = {row["metric"]: row for row in tables[1].records()}
    assert second["user satisfaction"]["ours: full"] != "not measured"
    assert second["pattern reuse"]["ours: full"] == "not measured"
    # 8 of 10 tasks.
    assert tables[0].records()[0]["ours: retail"].startswith("0.80 [")
    assert tables[0].records()[-1]["ours: retail"] == "not measured"


def test_claims_outside_of_tables(swept):
    found = {claim.what: claim for claim in claims(swept)}
    gained = found["success gained over the baseline"]
    assert gained.ours.startswith("+0.42 [+0.06") and gained.direction == "same"
    # (2/3 - 1/4) / (1/4)
    assert found["better than MUA-RL, relative"].ours == "+166.7%"
    # Both spent 20 episodes; MUA-RL's three runs did not reach the threshold in them.
    fewer = found["fewer episodes to the same success than MUA-RL"]
    assert (fewer.ours, fewer.direction) == (
        "0.0%, 3 runs never reached it", "no difference"
    )  # fmt: skip


def test_theory_from_the_rows():
    found = {c.what: c for c in theory([grpo_row(1), grpo_row(2, branch="high")])}
    assert found["share of groups that carry a signal"].ours == "0.62"
    assert found["steps by branch of the schedule"].ours == "high 50%, low 50%"
    assert found["horizon over training"].ours == "2.5 to 3 turns"
    assert all(c.ours == "not measured" for c in theory([]) if c.what != "horizon over training")


def test_time_shares_by_hand():
    parts = {"user": 10.0, "update": 40.0, "probe": 20.0, "rollout": 35.0}
    times = [StageTime("sft", 9.0, {}), StageTime("grpo", 100.0, parts)]
    assert shares(times) == {
        "user simulation": 0.1, "policy optimisation": 0.4, "tool orchestration": 0.0,
        "evaluation": 0.2, "sampling and environments": pytest.approx(0.3),
    }  # fmt: skip
    drawn = time_shares(times)
    assert drawn.chart is not None
    told = {c.what: (c.paper, c.ours, c.direction) for c in drawn.comparisons}
    assert told["policy optimisation"] == ("40%", "40%", "same place")
    assert told["evaluation"] == ("15%", "20%", "place 4 → 2")
    blank = time_shares([])
    assert blank.chart is None and "nothing is drawn" in blank.missing
    assert shares([StageTime("grpo", 5.0, {})]) == {}


def test_improvement_is_from_the_start():
    probes = [0.25, 0.5, 0.375]
    found = improvement([grpo_row(i, probe=p) for i, p in enumerate(probes)])
    assert found.comparisons[0].ours == "+12.5 points"
    assert "gain from 0 to 0.125; best so far from 0 to 0.25" in found.chart


def test_all_figures_with_a_sweep_and_without(material, swept):
    full, bare = paper_figures(swept), paper_figures(material)
    titles = [figure.title for figure in full]
    assert titles == [figure.title for figure in bare] and len(set(titles)) == 14
    assert [f.title for f in full if f.chart is None] == ["Time shares"]
    missing = [f for f in bare if f.chart is None]
    assert len(missing) == 6 and all("nothing is drawn" in f.missing for f in missing)
    assert all(not figure.legend for figure in missing)


def test_a_chain_with_a_gap_is_not_drawn(swept):
    assert contributions(swept).chart is not None
    table = json.loads(json.dumps(swept.ablations))
    del table["variants"]["chain_base"]
    assert contributions(replace(swept, ablations=table)).chart is None


def test_a_sweep_of_full_alone_compares_nothing(swept):
    table = json.loads(json.dumps(swept.ablations))
    table["variants"] = {"full": table["variants"]["full"]}
    assert distribution(replace(swept, ablations=table)).chart is None


def test_the_page_with_a_sweep_is_well_formed(swept):
    text = render(swept)
    page = Page(text)
    assert "Table 6." in text and "made_up" in text and "contradicts itself" in text
    assert len(page.all("caption")) == len(page.all("table"))
    assert text.count('class="card wide"') == 7


def test_the_files_kept_with_a_run(swept, tmp_path):
    from xml.etree import ElementTree

    write_artifacts(tmp_path / "report", swept)
    write_artifacts(tmp_path / "report", swept)
    drawn = sorted((tmp_path / "report/figures").iterdir())
    assert len(drawn) == 13
    for file in drawn:
        assert ElementTree.parse(file).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list((tmp_path / "report/tables").iterdir())) == 6
    assert "| 58.9% |" in (tmp_path / "report/tables/table-3.md").read_text()


def test_what_is_there_is_read_and_its_hash_told(tmp_path, request, swept):
    config = load_config(request.config.rootpath / "params.yaml")
    write_run(tmp_path, config)
    assert "metrics/ablations.json" not in gather(tmp_path, tmp_path, config).hashes
    write_json(tmp_path / "metrics/ablations.json", swept.ablations)
    seeds = read_json(tmp_path / "metrics/evaluate.json")
    del seeds["seed"], seeds["retention"]
    write_json(tmp_path / "metrics/seeds.json", {**seeds, "seeds": [1, 2]})
    found = gather(tmp_path, tmp_path, config)
    assert {"metrics/ablations.json", "metrics/seeds.json"} <= found.hashes.keys()
    assert found.headline["seeds"] == [1, 2] and found.ablations == swept.ablations
    render(found)


def test_advice_is_that_of_the_sweep_where_the_run_has_none(swept):
    figure = {"mean": 0.1, "low": -0.1, "high": 0.3, "tasks": 10, "seeds": 3}
    kinds = {
        kind: {"success": figure, "reward": figure, "turns": figure} for kind in ("hint", "off")
    }
    benchmarks = {"retail": {"agents": kinds, "hint_minus_off": figure}}
    advice = {"kind": "hint", "agent": "grpo", "benchmarks": benchmarks}
    text = render(replace(swept, ablations={**swept.ablations, "advice": advice}))
    assert "What advice on tools is worth" in text and "means over its seeds" in text
