"""The table of a sweep, against numbers worked by hand on made-up results."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from progrl.config import load_config, resolved
from progrl.config.models import AGENTS
from progrl.errors import DataError
from progrl.evaluation.ablations import ablations, verdict
from progrl.evaluation.summary import Summariser, evaluation
from progrl.evaluation.sweep import read_sweep
from progrl.files import file_digest, write_json, write_jsonl

from .records import make_result

CONFIG = load_config(Path(__file__).parents[2] / "params.yaml")
Outcomes = Sequence[bool | None]

# Of four tasks, by seed. The first one's goal changes.
FULL = {1: (True, True, False, True), 2: (True, False, False, True), 3: (True, True, True, False)}
STATIC = {
    1: (True, False, False, False),
    2: (True, False, False, False),
    3: (False, True, False, False),
}
FAST, SLOW = (0.2, 0.4, 0.6), (0.2, 0.3, 0.4)


def rows(probes: Sequence[float], tokens: int) -> list[dict[str, Any]]:
    """Ten episodes between two probes."""
    first = {"step": 0, "horizon": 2.0, "turns": 2, "probe": probes[0]}
    later = [
        {"step": step, "branch": "low", "episodes": 10, "tokens_sampled": tokens, "kl": 0.1,
         "gradient_norm": 2.0, "probe": probe}
        for step, probe in enumerate(probes[1:], start=1)
    ]  # fmt: skip
    return [first, *later]


def write_cell(folder: Path, seed: int, outcomes: Outcomes, steps: list[dict[str, Any]]) -> None:
    """A finished cell; on the held-out domain every agent solves one of two tasks."""
    retail = [make_result(f"t{n}", ok, goal_change=n == 0) for n, ok in enumerate(outcomes)]
    airline = [make_result("a0", True), make_result("a1", False)]
    results = {
        "retail": dict.fromkeys(AGENTS, retail),
        "airline": dict.fromkeys(AGENTS, airline),
    }
    summarise = Summariser(0.95, 100, 1)
    summary = {name: summarise.benchmark(agents) for name, agents in results.items()}
    write_json(folder / "metrics/evaluate.json", evaluation(summary, CONFIG.evaluation, seed))
    plain = {
        name: {agent: [row.to_json() for row in found] for agent, found in agents.items()}
        for name, agents in results.items()
    }
    write_json(folder / "evaluation/results.json", plain)
    write_jsonl(folder / "metrics/grpo.jsonl", steps)
    note = {"variant": folder.name, "seed": seed, "state": "done", "message": ""}
    write_json(folder / "cell.json", note)


def write_sweep(root: Path, seeds: Sequence[int], *more: str) -> None:
    told = {"about": "Another.", "claim": "It helps.", "expect": "below", "paper": {}}
    variants: dict[str, Any] = {
        "full": {**told, "claim": "", "changes": {}},
        "no_user": {**told, "changes": {"user": ["a", "b"]}, "paper": {"tau_bench": [76.3, 58.9]}},
        **{name: {**told, "changes": {"seed": [1, 2]}} for name in more},
        "react": {**told, "not_applicable": "No prompts."},
    }
    settings = {"name": "made_up", "profile": "sweep", "overrides": [], "seeds": list(seeds)}
    write_json(root / "sweep.json", {**settings, "variants": variants, "base": resolved(CONFIG)})


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    write_sweep(tmp_path, [1, 2, 3])
    for seed in (1, 2, 3):
        write_cell(tmp_path / f"seed-{seed}" / "full", seed, FULL[seed], rows(FAST, 100))
        write_cell(tmp_path / f"seed-{seed}" / "no_user", seed, STATIC[seed], rows(SLOW, 200))
    return tmp_path


def table(root: Path) -> Mapping[str, Any]:
    found = ablations(read_sweep(root), 0.95)
    assert json.loads(json.dumps(found, allow_nan=False))  # what is written is JSON
    return found


def near(value: Any) -> Any:
    return pytest.approx(value, abs=1e-4)


def test_success_is_the_mean_over_seeds(sweep: Path) -> None:
    variants = table(sweep)["variants"]
    full, static = variants["full"], variants["no_user"]
    assert full["seeds"] == static["seeds"] == [1, 2, 3]
    assert full["success_by_seed"] == [0.75, 0.5, 0.75]
    results = sweep / "seed-2" / "full" / "evaluation" / "results.json"
    assert full["results_by_seed"][1] == file_digest(results)
    # 2/3 +- 4.3027 * 0.14434 / sqrt 3
    assert full["success"] == near({"mean": 0.66667, "low": 0.30811, "high": 1.02523, "seeds": 3})
    assert static["success"]["mean"] == static["success"]["low"] == 0.25
    assert full["held_out"]["mean"] == 0.5
    assert "minus_full" not in full and "verdict" not in full


def test_the_difference_is_paired_by_seed_and_task(sweep: Path) -> None:
    static = table(sweep)["variants"]["no_user"]
    # -0.5, -0.25, -0.5: t = -5, and with two degrees of freedom p = 1 - 5 / sqrt 27.
    assert static["minus_full"] == near(
        {"mean": -0.41667, "low": -0.77523, "high": -0.05811, "seeds": 3}
    )
    found = static["differences"]
    assert found["success"]["p"] == near(0.03775)
    # 0, 0, -1: t = -1, p = 1 - 1 / sqrt 3.
    assert found["goal_change"]["mean"] == near(-1 / 3)
    assert found["goal_change"]["p"] == near(0.42265)
    assert found["held_out"]["mean"] == 0 and found["held_out"]["p"] == 1
    assert found["probe_area"]["mean"] == near(-0.1)
    assert found["probe_area"]["p"] == near(0)
    # Holm: from the smallest p, times 4, 3, 2, 1.
    assert {name: one["holm"] for name, one in found.items()} == near(
        {"success": 0.11325, "held_out": 1, "goal_change": 0.8453, "probe_area": 0}
    )
    assert {one["verdict"] for one in found.values()} == {"undecided"}  # three seeds are too few


def test_what_advice_is_worth_is_a_mean_over_the_seeds_of_full(sweep: Path) -> None:
    assert table(sweep)["advice"] is None
    for seed, gain in ((1, 0.1), (2, 0.3), (3, 0.2)):
        path = sweep / f"seed-{seed}" / "full" / "metrics" / "evaluate.json"
        worth = {"mean": gain, "low": 0.0, "high": 0.5, "tasks": 4, "seeds": 1}
        benchmarks = {"retail": {"hint_minus_off": worth}}
        advice = {"kind": "hint", "agent": "grpo", "benchmarks": benchmarks}
        write_json(path, {**json.loads(path.read_text()), "advice": advice})
    found = table(sweep)["advice"]
    assert (found["kind"], found["agent"]) == ("hint", "grpo")
    # 0.2 +- 4.3027 * 0.1 / sqrt 3
    assert found["benchmarks"]["retail"]["hint_minus_off"] == near(
        {"mean": 0.2, "low": -0.04841, "high": 0.44841, "tasks": 12, "seeds": 3}
    )


def test_a_task_lost_to_a_fault_is_in_no_pair(sweep: Path) -> None:
    write_cell(sweep / "seed-3" / "no_user", 3, (False, True, False, None), rows(SLOW, 200))
    # Seed 3 over its three common tasks: -2/3.
    minus = table(sweep)["variants"]["no_user"]["minus_full"]
    assert minus["mean"] == near((-0.5 - 0.25 - 2 / 3) / 3)


def test_training_is_measured_by_the_probe(sweep: Path) -> None:
    found = table(sweep)
    full, static = found["variants"]["full"], found["variants"]["no_user"]
    assert found["reference"] == {"variant": "full", "probe": near(0.6)}
    assert (full["episodes"], full["tokens"]) == (20, 200)
    assert (static["episodes"], static["tokens"]) == (20, 400)
    assert full["learning_efficiency"]["mean"] == near(0.5)  # (0.4 - 0.2) / (0.6 - 0.2)
    assert static["learning_efficiency"]["mean"] == near(0.25)
    # The threshold is 0.2 + 0.9 * 0.4; `full` passes it at its end, the other never.
    assert full["to_threshold"]["episodes"]["spent"]["mean"] == 20
    assert full["to_threshold"]["episodes"]["censored"] == 0
    assert static["to_threshold"]["tokens"]["spent"]["mean"] == 400
    assert static["to_threshold"]["tokens"]["censored"] == 3
    assert static["to_threshold"]["tokens"]["saved"]["mean"] is None
    # After 200 tokens, 0.3 against 0.6.
    assert static["probe_at_equal_tokens_minus_full"]["mean"] == near(-0.3)
    assert static["optimisation_efficiency"]["mean"] == near(-0.2)
    assert full["branches"] == {"low": 1.0}
    assert full["gradient_norm"]["mean"] == 2.0 and full["policy_deviation"]["mean"] == near(0.1)


def test_what_is_not_there_is_said(sweep: Path) -> None:
    (sweep / "seed-2" / "no_user" / "cell.json").unlink()
    note = {"variant": "no_user", "seed": 3, "state": "failed", "message": "No memory left."}
    write_json(sweep / "seed-3" / "no_user" / "cell.json", note)
    found = table(sweep)
    static = found["variants"]["no_user"]
    assert static["seeds"] == [1] and static["failed"] == {3: "No memory left."}
    assert not static["shown"] and found["variants"]["full"]["shown"]
    assert static["minus_full"] == {"mean": -0.5, "low": None, "high": None, "seeds": 1}
    assert static["differences"]["success"]["p"] is None
    assert found["variants"]["react"]["not_applicable"] == "No prompts."
    assert found["paper"] == {"no_user": {"tau_bench": [76.3, 58.9]}}


def test_eight_seeds_decide(tmp_path: Path) -> None:
    seeds = range(1, 9)
    write_sweep(tmp_path, seeds, "better")
    for seed in seeds:
        full = tuple(n <= seed % 2 for n in range(4))
        for name, outcomes in (
            ("full", full),
            ("no_user", (False,) * 4),
            ("better", (*full[:2], True, True)),
        ):
            write_cell(tmp_path / f"seed-{seed}" / name, seed, outcomes, rows(FAST, 100))
    variants = table(tmp_path)["variants"]
    assert variants["no_user"]["minus_full"]["mean"] == near(-0.375)
    assert variants["no_user"]["verdict"] == "holds"
    assert variants["better"]["verdict"] == "fails"
    assert variants["no_user"]["differences"]["held_out"]["verdict"] == "undecided"


def test_a_verdict_by_hand() -> None:
    below, above = {"mean": -0.1, "seeds": 8}, {"mean": 0.1, "seeds": 8}
    assert verdict(below, 0.049, 0.95, "below") == "holds"
    assert verdict(below, 0.049, 0.95, "above") == "fails"
    assert verdict(above, 0.049, 0.95, "above") == "holds"
    assert verdict(above, 0.049, 0.95, "below") == "fails"
    assert verdict(below, 0.05, 0.95, "below") == "undecided"
    assert verdict({"mean": -0.1, "seeds": 7}, 0.001, 0.95, "below") == "undecided"
    assert verdict({"mean": None, "seeds": 0}, None, 0.95, "below") == "undecided"


def test_a_folder_without_a_sweep_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no sweep.*flows\.ablate"):
        read_sweep(tmp_path)


def test_several_training_domains_count_alike(sweep: Path) -> None:
    """Retail's figures and airline's, whose one of two tasks every agent solves."""
    settings = json.loads((sweep / "sweep.json").read_text())
    settings["base"]["domains"] |= {"train": ["retail", "airline"], "held_out": []}
    write_json(sweep / "sweep.json", settings)
    alone = sum(map(sum, FULL.values())) / 12  # type: ignore[arg-type]
    found = ablations(read_sweep(sweep), 0.95)
    assert (found["benchmark"], found["held_out"]) == ("retail + airline", None)
    full, static = found["variants"]["full"], found["variants"]["no_user"]
    assert full["success"]["mean"] == pytest.approx((alone + 0.5) / 2)
    assert list(full["metrics"]) == ["retail + airline", "retail", "airline"]
    less = sum(map(sum, STATIC.values())) / 12 - alone  # type: ignore[arg-type]
    assert static["minus_full"]["mean"] == pytest.approx(less / 2)
