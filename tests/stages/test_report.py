"""The report of a run that the stages have made, from the warm start on."""

from pathlib import Path

import pytest

from progrl.files import read_json

from .conftest import finish
from .test_kill import Copy

pytestmark = pytest.mark.slow

SHORT = ("grpo.steps=3", "evaluation.bootstrap=100")


def test_the_report_is_made_of_what_the_stages_leave(copy: Copy, tmp_path: Path) -> None:
    root = copy("run", "data", "models", "metrics")
    for name in ("grpo", "evaluate", "report"):
        finish(name, root, tmp_path / f"{name}.log", *SHORT)
    page = (root / "reports" / "index.html").read_text()
    for heading in (
        "Case studies",
        "What advice on tools is worth",
        "Table 6.",
        "Training dynamics",
        "Which tools for which query",
        "hint − random",
    ):
        assert heading in page
    # The times of this machine are found, the table of a sweep is not.
    assert "same place" in page and "No timings of stage grpo" not in page
    assert "No sweep was summed up here" in page
    (kept,) = (root / "runs" / "report").glob("*/report")
    names = {path.stem for path in (kept / "figures").iterdir()}
    assert {"convergence", "time-shares", "improvement", "success-by-benchmark"} <= names
    advice = read_json(root / "metrics" / "evaluate.json")["advice"]
    assert (kept / "tables" / "advice.md").read_text().count("\n") == 2 + sum(
        len(summary["agents"]) + len(summary) - 1 for summary in advice["benchmarks"].values()
    )
