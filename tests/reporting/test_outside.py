"""Figures of benchmarks of others: kept by the command, shown by the report with idling beside."""

import json

import pytest
from typer.testing import CliRunner

from progrl.cli.app import app
from progrl.config import load_config
from progrl.errors import DataError
from progrl.files import write_json
from progrl.reporting import outside
from progrl.reporting.page import render
from progrl.reporting.paper_tables import paper_tables
from progrl.reporting.sources import gather
from tests.benchmarks.test_documents import corpus

from .run import write_run


def figures(benchmark, agent, success, do_nothing):
    return {
        "benchmark": benchmark, "licence": "MIT", "agent": agent, "n": 20, "success": success,
        "low": success - 0.1, "high": success + 0.1, "do_nothing": do_nothing, "faults": 0,
    }  # fmt: skip


@pytest.fixture
def material(tmp_path, request):
    config = load_config(request.config.rootpath / "params.yaml")
    write_run(tmp_path, config)
    rows = [
        figures("textcraft", "models/grpo", 0.2, 0.05),
        figures("babyai", "models/sft", 0.25, 0.0),
        figures("babyai", "models/grpo", 0.5, 0.1),
    ]
    for number, row in enumerate(rows):
        write_json(tmp_path / outside.FOLDER / f"{number}.json", row)
    return gather(tmp_path, tmp_path, config)


def test_table_1_has_what_was_measured_with_idling_beside(material):
    table = paper_tables(material)[0]
    assert all(len(row) == len(table.head) for row in table.rows)
    first = {row["method"]: row for row in table.records()}
    assert first["full"]["ours: babyai, n=20"] == "0.50 [0.40, 0.60]"
    assert first["does nothing"]["ours: babyai, n=20"] == "0.10"
    assert first["no user"]["ours: babyai, n=20"] == "not measured"
    assert "ours: textcraft, n=20" not in table.head  # the paper has none of it


def test_agents_trained_in_a_benchmark_stand_in_a_table_of_their_own(tmp_path, request):
    def share(mean):
        return {"mean": mean, "low": mean - 0.1, "high": mean + 0.1}

    agents = ("do_nothing", "untrained", "sft", "grpo")
    measured = {name: {"success": share(n / 4)} for n, name in enumerate(agents)}
    row = {"agents": measured, "grpo_minus_sft": {**share(0.25), "tasks": 40}}
    evaluated = {"label": "one seed", "benchmarks": {"babyai": row}}
    config = load_config(request.config.rootpath / "params.yaml")
    write_run(tmp_path, config)
    write_json(tmp_path / outside.TRAINED / "babyai.json", evaluated)
    material = gather(tmp_path, tmp_path, config)
    (shown,) = outside.trained_table(material)
    assert (shown["benchmark"], shown["tasks"]) == ("babyai", "40")
    assert shown["GRPO"] == "0.75 [0.65, 0.85]"
    assert shown["GRPO minus SFT"] == "+0.25 [+0.15, +0.35]"
    assert "Training in benchmarks" in render(material)
    write_json(tmp_path / outside.TRAINED / "other.json", {"benchmarks": {}})
    with pytest.raises(DataError, match=r"other\.json"):
        gather(tmp_path, tmp_path, config)


def test_the_page_has_all_of_them(material):
    rows = outside.outside_table(material)
    assert [(row["benchmark"], row["agent"]) for row in rows] == [
        ("babyai", "models/grpo"),
        ("babyai", "models/sft"),
        ("textcraft", "models/grpo"),
    ]
    page = render(material)
    assert "Benchmarks that others made" in page
    assert "0.20 [0.10, 0.30]" in page
    assert outside.FOLDER in material.hashes


def test_other_files_are_refused(tmp_path):
    assert outside.kept(tmp_path / "none") == []
    write_json(tmp_path / "x.json", {**figures("babyai", "grpo", 0.5, 0.0), "n": "many"})
    with pytest.raises(DataError, match=r"x\.json: no figures of a benchmark"):
        outside.kept(tmp_path)


def test_the_command_keeps_figures_where_the_report_reads_them(tmp_path, root, monkeypatch):
    monkeypatch.setattr("progrl.benchmarks.contracts.Benchmark.missing", ())
    (tmp_path / "params.yaml").write_bytes((root / "params.yaml").read_bytes())
    (tmp_path / "corpus").mkdir()
    corpus(tmp_path / "corpus")
    line = ["evaluate", "--benchmark", "document_search", "--agent", "do_nothing", "--json"]
    line += ["--corpus", str(tmp_path / "corpus"), "--params", str(tmp_path / "params.yaml")]
    assert CliRunner().invoke(app, line).exit_code == 0
    assert not (tmp_path / outside.FOLDER).exists()
    done = CliRunner().invoke(app, [*line, "--keep"])
    (found,) = outside.kept(tmp_path / outside.FOLDER)
    assert found == json.loads(done.stdout)
    assert (found["agent"], found["success"]) == ("do_nothing", 0.0)
