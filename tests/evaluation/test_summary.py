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


def test_shares_are_pooled_over_cases():
    rows = [
        make_result("a", coherent_turns=1, coherence_turns=2, failures=0, changed_calls=0),
        make_result("b", coherent_turns=6, coherence_turns=6, failures=0, changed_calls=0),
    ]
    summary = SUMMARISER.agent(rows)
    assert summary["coherence"]["mean"] == 0.875 and summary["coherence"]["episodes"] == 2
    assert summary["coherence"]["low"] <= 0.875 <= summary["coherence"]["high"]
    assert summary["changed_calls"]["mean"] is None
    assert summary["selection_accuracy"]["episodes"] == 0


def test_tools_are_compared_to_the_expert_and_by_pairs():
    def rows(count, tools, solved=True):
        return [make_result(f"t{i}", solved, tool_calls=count, tools=tools) for i in range(4)]

    results = {
        "expert": rows(2, ("a", "b")),
        "untrained": rows(0, (), solved=False),
        "sft": rows(4, ("a", "b", "b", "b")),
        "grpo": [*rows(2, ("a", "b"))[:3], make_result("t3", tool_calls=4, tools=("c",) * 4)],
    }
    found = SUMMARISER.benchmark(results)
    pair = found["tool_efficiency"]["grpo_minus_sft"]
    assert list(pair) == ["grpo", "sft"] and pair["sft"]["mean"] == 0.5
    assert pair["grpo"]["mean"] == 0.875 and pair["grpo"]["episodes"] == 4
    nothing = found["tool_efficiency"]["sft_minus_untrained"]["sft"]
    assert nothing["mean"] is None and nothing["episodes"] == 0
    consistency = {name: of["tool_consistency"]["mean"] for name, of in found["agents"].items()}
    # Of six pairs of GRPO three are equal and three have nothing in common.
    assert consistency == {"expert": 1.0, "untrained": 1.0, "sft": 1.0, "grpo": 0.5}
    assert found["agents"]["grpo"]["tool_consistency"]["low"] is None
    without = SUMMARISER.benchmark({"sft": rows(1, ("a",))})
    assert without["agents"]["sft"]["tool_consistency"]["mean"] is None
    assert without["tool_efficiency"] == {}
    merged = merge_seeds([evaluation({"retail": found}, CONFIG, seed) for seed in (1, 2)])
    again = merged["benchmarks"]["retail"]
    assert again["tool_efficiency"]["grpo_minus_sft"]["grpo"]["mean"] == 0.875
    assert again["agents"]["grpo"]["tool_consistency"]["mean"] == 0.5


def test_retention_has_its_guard():
    retail = SUMMARISER.benchmark({"sft": agent(0.8), "grpo": agent(0.3), "do_nothing": agent(0)})
    airline = SUMMARISER.benchmark({"sft": agent(0.4), "grpo": agent(0.2), "do_nothing": agent(0)})
    tree = evaluation({"retail": retail, "airline": airline}, CONFIG, 1, held_out=["airline"])
    assert tree["retention"] == {
        "airline": {
            "sft": {"value": pytest.approx(0.5), "kind": "ratio"},
            "grpo": {"value": 0.2, "kind": "absolute"},  # 0.3 of 20 may be as little as 0.15
            "do_nothing": {"value": 0.0, "kind": "absolute"},
        }
    }
    assert evaluation({"retail": retail}, CONFIG, 1)["retention"] == {}
