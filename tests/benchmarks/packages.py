"""Which benchmarks can run where the tests run."""

import pytest

from progrl.benchmarks import find
from progrl.benchmarks.contracts import Adapter


def opened(name: str) -> Adapter:
    """The adapter, or the test is skipped with the line that installs what is missing."""
    benchmark = find(name)
    if benchmark.missing:
        pytest.skip(f"needs {', '.join(benchmark.missing)}: {benchmark.install}")
    return benchmark.open()
