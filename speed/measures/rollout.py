"""Rollouts: tokens a second of conversations of many turns, and how far they are from the bound."""

from collections.abc import Mapping
from typing import Any

from speed.compare import VLLM, Readings, Way, compare, kernels, memory, middle, ratio, versus
from speed.plan import Found, Plan
from speed.workload import Workload

OURS, DEFAULT = "progrl", "progrl, default keys"
"""With its kernels where there is a compiler, and without, as the default configuration has it."""
PEERS = {
    "rollout_vs_hf_reread": "HF generate, re-reading",
    "rollout_vs_hf_cached": "HF generate, cache kept",
    "rollout_vs_vllm_cpu": "vLLM",
}


def ways_of(plan: Plan) -> dict[str, Way]:
    """Ours, its variants, and the peers that are installed."""
    work, threads = plan.work, plan.threads
    names = list(PEERS.values())
    ways = {
        OURS: Way("ours.rollout", work, kernels(), threads=threads),
        DEFAULT: Way("ours.rollout", work, threads=threads),
        f"{OURS}, bfloat16": Way("ours.rollout", work, {"dtype": "bfloat16"}, threads=threads),
        names[0]: Way("hf.reread", work, threads=threads),
        names[1]: Way("hf.cached", work, threads=threads),
        names[2]: Way("vllm.rollout", work, python=VLLM, threads=threads),
        "bounds": Way("machine.bounds", work, threads=threads),
    }
    return {name: way for name, way in ways.items() if way.installed}


def measure(plan: Plan) -> Found:
    """`rollout_vs_...`, the machine's bounds, and the share of them that decoding reaches."""
    ways = ways_of(plan)
    readings = compare(ways, plan.rounds)
    found = Found()
    for key, name in PEERS.items():
        found.figures[key] = versus(readings, name, OURS, plan.key)
        found.figures[f"{key}_default"] = versus(readings, name, DEFAULT, plan.key)
    if PEERS["rollout_vs_vllm_cpu"] not in ways:
        found.notes.append("vLLM is not installed: `make setup-vllm` does it.")
    bounds = {name: middle(readings["bounds"], name) for name in BOUNDS}
    share = least_seconds(plan.work, bounds) / middle(readings[OURS], plan.key)
    found.figures |= {
        "matmul_gflops": bounds["gflops"],
        "memory_read_gb_per_s": bounds["read_gb"],
        "rollout_share_of_bound": share,
    }
    rows = {name: row(readings, name, plan) for name in ways if name != "bounds"}
    bytes_read = traffic(plan.work) / 1e9 / middle(readings[OURS], plan.key)
    found.details["rollout"] = {"ways": rows, "bounds": bounds, "cache_gb_per_s": bytes_read}
    return found


BOUNDS = ("gflops", "gflops_bfloat16", "read_gb", "copy_gb")


def row(readings: Readings, name: str, plan: Plan) -> dict[str, Any]:
    """What is told of a way: tokens a second, ratios by both clocks, memory."""
    some = readings[name]
    return {
        "tokens_per_s": some[0]["tokens"] / middle(some, plan.key),
        "seconds_cpu": middle(some),
        "seconds_wall": middle(some, "wall"),
        "times_ours_cpu": ratio(readings, name, OURS),
        "times_ours_wall": ratio(readings, name, OURS, "wall"),
        "memory_mib": memory(some),
    }


def traffic(work: Workload) -> int:
    """Bytes of keys and values in float32 that decoding reads: for each token all before it."""
    shape = work.shape
    each = 2 * shape.layers * shape.kv_heads * shape.head_dim * 4
    return each * work.conversations * sum(_decoded(work))


def least_seconds(work: Workload, bounds: Mapping[str, float]) -> float:
    """Seconds that no program in float32 can stay under: reading prompts at the peak of
    multiplication, and decoding at that or at the bandwidth, whichever takes longer."""
    shape = work.shape
    layers = 2 * (shape.parameters - shape.vocabulary * shape.hidden)
    looked = 4 * shape.layers * shape.heads * shape.head_dim
    ends = [at * (work.read + work.sampled) + work.read for at in range(work.turns)]
    read = sum(
        layers + looked * position for end in ends for position in range(end - work.read, end)
    )
    head = 2 * shape.vocabulary * shape.hidden
    decoded = sum(layers + head + looked * position for position in _decoded(work))
    peak = bounds["gflops"] * 1e9 / work.conversations
    return read / peak + max(decoded / peak, traffic(work) / bounds["read_gb"] / 1e9)


def _decoded(work: Workload) -> list[int]:
    """The positions at which a conversation's tokens are decoded."""
    each = work.read + work.sampled
    return [
        at * each + work.read + token for at in range(work.turns) for token in range(work.sampled)
    ]
