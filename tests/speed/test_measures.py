"""What is made of the times: worked by hand."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from progrl.agent import native
from speed import __main__ as program
from speed.compare import Way, WayFailed, memory, middle, ratio
from speed.measures import pipeline, rollout, scaling, step, turns
from speed.plan import Found, Plan
from speed.report import GOALS, markdown, met
from speed.workload import Shape, Workload

Row = dict[str, Any]
ISSUE = {
    "rollout_vs_hf_reread",
    "rollout_vs_hf_cached",
    "rollout_vs_vllm_cpu",
    "grpo_step_vs_trl",
    "turn_growth_over_bound",
    "overlap_200ms",
    "environment_turns_per_s",
    "simulation_and_tools_share",
    "pipeline_overhead",
}
MEMORY = {"idle_mib": 300.0, "peak_mib": 450.0}


def readings(**more: Any) -> Row:
    return {"cpu": 2.0, "wall": 4.0, "tokens": 960, **MEMORY, **more}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Row:
    """What each way reads, by its name and options; all are installed, a compiler too."""
    by_way: Row = {}

    def compare(ways: Mapping[str, Way], rounds: int) -> dict[str, Sequence[Row]]:
        def of(way: Way) -> Row:
            options = "".join(f" {value}" for value in way.options.values())
            alone = " alone" if way.work.conversations == 1 else ""
            return {**readings(), **by_way.get(f"{way.name}{options}{alone}", {})}

        return {name: [of(way)] * rounds for name, way in ways.items()}

    for module in (rollout, turns, step, scaling):
        monkeypatch.setattr(module, "compare", compare)
    monkeypatch.setattr(Way, "installed", property(lambda way: True))
    monkeypatch.setattr(native, "find_compiler", lambda: "g++")
    return by_way


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    slow = [{"cpu": 8.0}, {"cpu": 90.0}, {"cpu": 9.0}]
    fast = [{"cpu": 1.0}, {"cpu": 9.0}, {"cpu": 3.0}]  # 8, 10, 3
    assert ratio({"slow": slow, "fast": fast}, "slow", "fast") == 8.0
    assert middle(slow) == 9.0
    assert memory([{**MEMORY}, {**MEMORY, "peak_mib": 460.5}]) == {
        "peak": 460.5,
        "beyond_idle": 160.5,
    }


def test_rollouts_beside_their_peers_and_the_bound(told: Row) -> None:
    told |= {
        "hf.reread": {"cpu": 16.0},
        "hf.cached": {"cpu": 10.0},
        "ours.rollout True": {"cpu": 1.0},
        "vllm.rollout": {"cpu": 1.0},
        "machine.bounds": {
            "gflops": 100.0,
            "gflops_bfloat16": 1.0,
            "read_gb": 1e-3,
            "copy_gb": 1.0,
        },
    }
    # 2 layers of 1 head of 2, in 2 conversations of 1 turn: after 3 tokens read, 2 are decoded at
    # 3 and 4: 7 * (2 * 2 * 1 * 2 * 4) * 2 bytes, at 1 MB a second.
    work = Workload(2, 1, 3, 2, 2, Shape(16, 4, 2, 1, 1, 2, 4))
    assert rollout.traffic(work) == 448
    found = rollout.measure(Plan(work))
    assert found.figures["rollout_vs_hf_reread"] == 16.0
    assert found.figures["rollout_vs_hf_reread_default"] == 8.0
    assert found.figures["rollout_vs_hf_cached"] == 10.0
    assert found.figures["rollout_vs_vllm_cpu"] == 1.0
    # Memory is so slow here that multiplying counts for nothing: 448e-6 s of 1 s.
    share = found.figures["rollout_share_of_bound"]
    assert share == pytest.approx(448e-6, rel=1e-3)
    assert found.details["rollout"]["ways"]["progrl"]["tokens_per_s"] == 960


def test_a_peer_that_is_not_there_is_null(told: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    told["machine.bounds"] = dict.fromkeys(rollout.BOUNDS, 1.0)
    gone = {"speed's", "vllm's"}
    monkeypatch.setattr(Way, "installed", property(lambda way: way.python not in gone))
    monkeypatch.setattr(rollout, "VLLM", "vllm's")
    monkeypatch.setattr(step, "PEER", "speed's")
    told["domain.retail"] = {"environment": 1.0, "user": 1.0, "turns": 4}
    for options in ("", " True", " tree True"):
        told[f"step.grpo{options}"] = {"rollout": 1.0, "update": 1.0}
    played, stepped = rollout.measure(Plan()), step.grpo(Plan())
    assert played.figures["rollout_vs_vllm_cpu"] is None
    assert stepped.figures["grpo_step_vs_trl"] is None
    assert "setup-vllm" in played.notes[0] and "setup-speed" in stepped.notes[0]


def test_growth_is_held_against_attention_alone(told: Row) -> None:
    facts = {"turn_cpu": [1.0, 1.0, 1.65], "turn_read": [40.0, 41.0, 41.0]}
    told["ours.turns True"] = {**facts, "attention": [0.1, 0.6]}  # so the last should take 1.5
    told["ours.turns"] = {**facts, "attention": [0.1, 0.75]}
    found = turns.growth(Plan())
    assert found.figures["turn_growth_over_bound"] == pytest.approx(1.1)
    assert found.figures["turn_growth_over_bound_default"] == pytest.approx(1.0)
    assert found.details["growth"]["bound"] == pytest.approx(1.5)
    assert found.details["growth"]["tokens_read_in_last"] == 41


def test_overlap_is_the_share_of_waiting_that_is_hidden(told: Row) -> None:
    told |= {
        "ours.rollout 0.0 True": {"wall": 2.0},
        "ours.rollout 0.2 True": {"wall": 3.6},
        "ours.rollout True alone": {"wall": 0.5},
    }
    found = turns.overlap(Plan(Workload(10, 6)))
    row = found.details["overlap"]["by_ms"]["200"]
    # 5 waits of 0.2 s: one after another 2 + 10 of them, ideally no longer than the work.
    assert (row["sequential"], row["ideal"], row["in_step"]) == (12.0, 2.0, 3.0)
    assert found.figures["overlap_200ms"] == pytest.approx(8.4 / 10)
    assert row["ideal_over_ours"] == pytest.approx(2 / 3.6)
    assert found.details["overlap"]["by_ms"]["0"]["hidden"] is None


def test_a_step_beside_trls_and_what_simulation_takes_of_it(told: Row) -> None:
    told |= {
        "step.grpo": {"cpu": 9.0, "rollout": 4.0, "update": 5.0},
        "step.grpo True": {"cpu": 3.0, "rollout": 1.0, "update": 2.0},
        "step.grpo tree True": {"rollout": 1.0, "update": 2.0},
        "trl.grpo 8": {"cpu": 18.0},
        "domain.retail": {"environment": 0.1, "user": 0.3, "turns": 400, "cpu": 1.0},
    }
    found = step.grpo(Plan(Workload(30, 10)))
    assert found.figures["grpo_step_vs_trl"] == 6.0
    assert found.figures["grpo_step_vs_trl_default"] == 2.0
    assert found.figures["environment_turns_per_s"] == pytest.approx(1000)
    # 300 turns of a millisecond beside 3 s.
    assert found.figures["simulation_and_tools_share"] == pytest.approx(0.3 / 3.3)


def test_training_and_scaling(told: Row) -> None:
    told["hf.train"] = {"cpu": 5.0}
    assert step.training(Plan()).figures["training_vs_plain"] == 2.5
    grown = scaling.measure(Plan()).details["growth_of_rollouts"]
    assert list(grown["episodes"]) == ["1x", "4x", "16x"]
    sizes = [row["parameters"] for row in grown["model"].values()]
    assert sizes == sorted(sizes) and round(sizes[-1] / 1e6, 1) == 134.5


def test_the_pipeline_is_held_against_its_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    order = []

    def timed(name: str, profile: str, environment: Mapping[str, str]) -> float:
        order.append(name)
        return {"flow": 103.0, "commands": 100.0}[name]

    @contextmanager
    def server() -> Iterator[dict[str, str]]:
        yield {}

    monkeypatch.setattr(pipeline, "_timed", timed)
    monkeypatch.setattr(pipeline, "_server", server)
    found = pipeline.measure(Plan(rounds=2))
    assert found.figures["pipeline_overhead"] == pytest.approx(0.03)
    assert found.details["pipeline"]["added_seconds"] == 3.0
    assert order == ["commands", "flow", "flow", "commands"]


def test_a_run_has_all_figures_and_survives_a_failure(
    told: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(plan: Plan) -> Found:
        raise WayFailed("hf.train: no memory")

    told["hf.train"] = {"cpu": 5.0}
    monkeypatch.setitem(program.MEASURES, "pipeline", fails)
    results = program.run(Plan(), ["training", "pipeline"], lambda line: None)
    assert set(GOALS) | {"goals_met", "details", "notes", "seconds", "machine"} <= set(results)
    assert set(GOALS) >= ISSUE
    assert results["training_vs_plain"] == 2.5 and results["pipeline_overhead"] is None
    assert results["notes"] == ["pipeline failed: hf.train: no memory"]
    assert json.loads(json.dumps(results)) == results
    results["details"]["pipeline"] = {
        "flow_seconds": 103.0,
        "commands_seconds": 100.0,
        "added_seconds": 3.0,
    }
    page = markdown(results)
    assert "The flow took 103.0 s, the stages' bare commands 100.0 s: 3.0 s more." in page
    assert "| `training_vs_plain` | 2.5 | – | – |" in page and "no memory" in page


def test_goals_are_met_from_the_right_side() -> None:
    assert met("rollout_vs_hf_reread", 8.0) and not met("rollout_vs_hf_reread", 7.9)
    assert met("pipeline_overhead", 0.05) and not met("pipeline_overhead", 0.06)
    assert met("grpo_step_vs_trl", None) is None and met("matmul_gflops", 100.0) is None


def test_wrong_options_end_with_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        program.parse(["--quick", "--threads", "0"])
    assert ended.value.code == 2
    assert "at least 1" in capsys.readouterr().err
