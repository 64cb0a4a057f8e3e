"""Benchmarks that others made, and search in documents: adapters on the contract of a domain.

Each brings its tasks, the environment, the benchmark's own verdict and gold trajectories.
"""

from progrl.benchmarks.contracts import Benchmark, Status
from progrl.benchmarks.play import Verdict, gold, verdict
from progrl.benchmarks.registry import BENCHMARKS, find

__all__ = ["BENCHMARKS", "Benchmark", "Status", "Verdict", "find", "gold", "verdict"]
