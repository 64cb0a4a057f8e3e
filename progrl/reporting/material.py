"""What a report is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from progrl.dialogue.trajectories import Trajectory
from progrl.evaluation.metrics import Result

Rows = Sequence[Mapping[str, Any]]
Results = Mapping[str, Mapping[str, Sequence[Result]]]
"""By benchmark and agent, an episode each."""


@dataclass(frozen=True, slots=True)
class StageTime:
    """Wall seconds of a stage, and of the components that it measures."""

    stage: str
    seconds: float
    components: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Material:
    """All that a report is made of; what is empty is said to be missing.

    Attributes:
        evaluate: of metrics/evaluate.json.
        generate: of metrics/generate.json.
        sft, grpo: rows of metrics/*.jsonl.
        examples: kept trajectories by benchmark and agent.
        config: the resolved configuration.
        configuration: its hash.
        versions: of Python, progrl and packages.
        hashes: SHA-256 of the files that the report was made from.
        times: of the stages, on the machine that ran them.
        results: of all episodes of the evaluation.
        seeds: of metrics/seeds.json, the evaluations of several seeds, if they were merged.
        ablations: of metrics/ablations.json, if a sweep was summed up.
        outside: of metrics/benchmarks, a benchmark of others and an agent each.
        trained: of metrics/benchmarks/training, evaluations of runs that trained in one.
    """

    evaluate: Mapping[str, Any]
    generate: Mapping[str, float]
    sft: Rows
    grpo: Rows
    examples: Mapping[str, Mapping[str, Sequence[Trajectory]]]
    config: Mapping[str, Any]
    configuration: str
    versions: Mapping[str, str]
    hashes: Mapping[str, str]
    times: Sequence[StageTime] = field(default_factory=tuple)
    results: Results = field(default_factory=dict)
    seeds: Mapping[str, Any] | None = None
    ablations: Mapping[str, Any] | None = None
    outside: Rows = field(default_factory=tuple)
    trained: Rows = field(default_factory=tuple)

    @property
    def headline(self) -> Mapping[str, Any]:
        """The evaluation that figures show: over seeds where there is one, else this run's."""
        return self.seeds or self.evaluate

    @property
    def advice(self) -> Mapping[str, Any] | None:
        """What advice on tools is worth: to this run's agent, else to those of a sweep's `full`."""
        found: Mapping[str, Any] | None = self.evaluate.get("advice")
        return found or (self.ablations or {}).get("advice")
