"""Training: GRPO steps beside TRL's, updates beside a plain loop, and what else a step has."""

from speed.compare import PEER, Way, compare, kernels, memory, middle, ratio, versus
from speed.measures.rollout import DEFAULT, OURS
from speed.plan import Found, Plan

TRL = "TRL"
BATCH = 8
"""Episodes in one forward pass of TRL's update: of 8, 16 and 64 the fastest here."""


def grpo(plan: Plan) -> Found:
    """`grpo_step_vs_trl`, and `simulation_and_tools_share`, for which retail is played too."""
    work, threads = plan.work, plan.threads
    ways = {
        OURS: Way("step.grpo", work, kernels(), threads=threads),
        DEFAULT: Way("step.grpo", work, threads=threads),
        f"{OURS}, credit by tree": Way(
            "step.grpo", work, {"credit": "tree", **kernels()}, threads=threads
        ),
        TRL: Way("trl.grpo", work, {"batch": BATCH}, PEER, threads),
        "retail": Way("domain.retail", work),
    }
    ways = {name: way for name, way in ways.items() if way.installed}
    readings = compare(ways, plan.rounds)
    retail = readings.pop("retail")
    found = Found()
    found.figures["grpo_step_vs_trl"] = versus(readings, TRL, OURS, plan.key)
    found.figures["grpo_step_vs_trl_default"] = versus(readings, TRL, DEFAULT, plan.key)
    if TRL not in ways:
        found.notes.append("TRL is not installed: `make setup-speed` does it.")
    parts = {name: middle(retail, name) for name in ("environment", "user")}
    each = sum(parts.values()) / retail[0]["turns"]
    simulated = each * work.conversations * work.turns
    step = middle(readings[OURS], plan.key)
    found.figures["environment_turns_per_s"] = 1 / each
    found.figures["simulation_and_tools_share"] = simulated / (simulated + step)
    rows = {}
    for name, some in readings.items():
        rows[name] = {
            "seconds_cpu": middle(some),
            "seconds_wall": middle(some, "wall"),
            "times_ours_cpu": ratio(readings, name, OURS),
            "times_ours_wall": ratio(readings, name, OURS, "wall"),
            "memory_mib": memory(some),
        }
    split = {name: middle(readings[OURS], name) for name in ("rollout", "update")}
    found.details["grpo"] = {"ways": rows, "ours_wall": split}
    found.details["environment"] = {
        "turns": retail[0]["turns"],
        "whole_episodes_turns_per_cpu_s": retail[0]["turns"] / middle(retail),
        "microseconds_a_turn": {
            name: 1e6 * seconds / retail[0]["turns"] for name, seconds in parts.items()
        },
        "memory_mib": memory(retail),
    }
    return found


def training(plan: Plan) -> Found:
    """`training_vs_plain`: updates over dialogues of different lengths."""
    work, threads = plan.work, plan.threads
    ways = {
        OURS: Way("sft.train", work, kernels(), threads=threads),
        DEFAULT: Way("sft.train", work, threads=threads),
        "plain loop": Way("hf.train", work, threads=threads),
    }
    readings = compare(ways, plan.rounds)
    rows = {
        name: {
            "tokens_per_s": some[0]["tokens"] / middle(some, plan.key),
            "memory_mib": memory(some),
        }
        for name, some in readings.items()
    }
    figures: dict[str, float | None] = {
        "training_vs_plain": ratio(readings, "plain loop", OURS, plan.key),
        "training_vs_plain_default": ratio(readings, "plain loop", DEFAULT, plan.key),
    }
    return Found(figures, {"training": rows})
