import json
from pathlib import Path

import pytest

from progrl.config import load_config
from progrl.errors import DataError
from progrl.evaluation.seeds import merge_files, merge_seeds
from progrl.evaluation.statistics import t_interval, wilson
from progrl.evaluation.summary import Summariser, evaluation
from progrl.files import read_json, write_json

from .records import make_result

CONFIG = load_config(Path(__file__).parents[2] / "params.yaml").evaluation
SUMMARISER = Summariser(confidence=0.95, resamples=500, seed=3)


def agent(share: float, n: int = 20, **changes):
    return [make_result(f"t{i:02}", i < share * n, level=i % 2 + 1, **changes) for i in range(n)]


def one_seed(seed: int, sft: float, grpo: float):
    results = {"do_nothing": agent(0), "sft": agent(sft), "grpo": agent(grpo)}
    return evaluation({"retail": SUMMARISER.benchmark(results)}, CONFIG, seed)


def test_the_shape_that_others_read():
    tree = json.loads(json.dumps(one_seed(1, 0.5, 0.75), allow_nan=False))
    retail = tree["benchmarks"]["retail"]
    for name in ("do_nothing", "sft", "grpo"):
        for metric in ("success", "reward", "turns"):
            assert set(retail["agents"][name][metric]) == {
                "mean", "low", "high", "episodes", "seeds",
            }  # fmt: skip
    assert retail["grpo_minus_sft"]["mean"] == pytest.approx(0.25)
    assert retail["grpo_minus_sft"]["low"] <= 0.25 <= retail["grpo_minus_sft"]["high"]
    assert retail["grpo_minus_sft"]["tasks"] == 20
    assert tree["label"] == "one seed; interval over tasks"
    # Levels alternate, and of t00..t09 five are of each level.
    assert retail["levels"]["1"]["sft"]["mean"] == 0.5
    assert list(retail["levels"]) == ["1", "2"]
    assert list(retail["families"]) == ["cancel"]


def test_success_has_wilsons_interval_and_counts_episodes():
    success = SUMMARISER.agent(agent(0.75))["success"]
    expected = wilson(15, 20, 0.95)
    assert (success["mean"], success["low"], success["high"]) == (0.75, expected.low, expected.high)
    assert success["episodes"] == 20 and success["seeds"] == 1


def test_undefined_is_null_and_never_0():
    summary = SUMMARISER.agent(agent(0.5))
    assert summary["goal_change_success"]["mean"] is None
    assert summary["recovery"] == {
        "mean": None, "low": None, "high": None, "episodes": 0, "seeds": 1,
    }  # fmt: skip
    lost = SUMMARISER.agent([make_result("a", None)])
    assert lost["success"]["mean"] is None and lost["ends"] is None and lost["faults"] == 1


def test_faults_are_counted_apart():
    summary = SUMMARISER.agent([*agent(0.5), make_result("x", None)])
    assert summary["faults"] == 1
    assert summary["success"]["mean"] == 0.5 and summary["success"]["episodes"] == 20


def test_pass_k_where_there_are_trials():
    rows = [*agent(1.0, trial=0), *agent(0.5, trial=1)]
    passes = SUMMARISER.agent(rows)["pass_k"]
    assert passes["1"]["mean"] == 0.75 and passes["2"]["mean"] == 0.5
    assert passes["2"]["episodes"] == 40
    assert "pass_k" not in SUMMARISER.agent(agent(0.5))


def test_seeds_are_merged_by_their_means():
    seeds = [one_seed(1, 0.5, 0.75), one_seed(2, 0.4, 0.8), one_seed(3, 0.6, 0.65)]
    merged = merge_seeds(json.loads(json.dumps(seeds)))
    retail = merged["benchmarks"]["retail"]
    expected = t_interval([0.25, 0.4, 0.05], 0.95)
    difference = retail["grpo_minus_sft"]
    assert difference["mean"] == pytest.approx(expected.mean)
    assert difference["low"] == pytest.approx(expected.low)
    assert difference["seeds"] == 3 and difference["tasks"] == 60
    success = retail["agents"]["sft"]["success"]
    assert success["mean"] == pytest.approx(0.5)
    assert success["episodes"] == 60 and success["seeds"] == 3
    assert retail["agents"]["sft"]["faults"] == 0
    assert retail["agents"]["sft"]["ends"]["closed"] == 1.0
    assert retail["agents"]["sft"]["recovery"]["mean"] is None
    assert merged["seeds"] == [1, 2, 3] and "over seeds" in merged["label"]
    assert list(retail) == list(seeds[0]["benchmarks"]["retail"])


def test_a_figure_defined_in_one_seed_has_no_interval():
    first, second = one_seed(1, 0.5, 0.7), one_seed(2, 0.5, 0.7)
    figure = {"mean": 0.3, "low": 0.1, "high": 0.5, "episodes": 9, "seeds": 1}
    first["benchmarks"]["retail"]["agents"]["sft"]["recovery"] = figure
    merged = merge_seeds([first, second])["benchmarks"]["retail"]["agents"]["sft"]["recovery"]
    assert merged == {"mean": 0.3, "low": None, "high": None, "episodes": 9, "seeds": 1}


def test_a_family_that_one_seed_lacks_is_kept():
    first, second = one_seed(1, 0.5, 0.7), one_seed(2, 0.5, 0.7)
    families = first["benchmarks"]["retail"]["families"]
    families["exchange"] = families["cancel"]
    merged = merge_seeds([first, second])["benchmarks"]["retail"]["families"]
    assert merged["exchange"]["grpo"]["seeds"] == 1 and merged["cancel"]["grpo"]["seeds"] == 2


def test_evaluations_that_differ_are_not_merged():
    first, second = one_seed(1, 0.5, 0.7), one_seed(2, 0.5, 0.7)
    with pytest.raises(DataError, match="at least two"):
        merge_seeds([first])
    with pytest.raises(DataError, match="same seed"):
        merge_seeds([first, first])
    with pytest.raises(DataError, match="horizon is 20 and 10"):
        merge_seeds([first, {**second, "horizon": 10}])
    del second["benchmarks"]["retail"]["agents"]["do_nothing"]
    with pytest.raises(DataError, match="other benchmarks or agents"):
        merge_seeds([first, second])


def test_files_are_merged_into_one(tmp_path):
    files = []
    for seed in (1, 2, 3):
        files.append(tmp_path / str(seed) / "metrics" / "evaluate.json")
        write_json(files[-1], one_seed(seed, 0.5, 0.6 + seed / 20))
    merged = merge_files(files, tmp_path / "seeds.json")
    assert read_json(tmp_path / "seeds.json") == merged
    with pytest.raises(DataError, match=r"seeds\.json: not the evaluation of one seed"):
        merge_files([files[0], tmp_path / "seeds.json"], tmp_path / "again.json")
