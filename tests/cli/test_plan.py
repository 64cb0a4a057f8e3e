"""`progrl plan`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from progrl.memory import LongTermMemory
from tests.cli.conftest import Run
from tests.orchestration.desk import RETAIL, learned

TINY = ("--profile", "tiny", "--set", "embedding.kind=hashed")


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("policy") / "tools"
    learned().save(folder)
    return str(folder)


def test_it_prints_a_plan(run: Run, policy: str) -> None:
    args = ("plan", "i want to return a lamp", "--domain", "retail", "--policy", policy, *TINY)
    told = json.loads(run(*args, "--json").stdout)
    assert list(told) == ["sequence", "confidence", "fallback"]
    assert len(told["sequence"]) == len(told["confidence"]) == len(told["fallback"]) > 0
    assert {*told["sequence"], *told["fallback"]} <= {
        *(t.name for t in RETAIL.tools),
        "talk",
        "stop",
    }
    shown = run(*args).stdout.splitlines()
    assert len(shown) == len(told["sequence"]) + 1
    first = f"{told['confidence'][0]:.3f}"
    assert shown[1].split() == ["1", told["sequence"][0], first, told["fallback"][0]]


def test_drawn_plans_follow_the_seed(run: Run, policy: str) -> None:
    args = ("plan", "hello", "--domain", "retail", "--policy", policy, "--choice", "sampled")
    plans = [run(*args, "--seed", str(n), "--json", *TINY).stdout for n in (1, 1, 2, 3, 4)]
    assert plans[0] == plans[1]
    assert len(set(plans)) > 1


def test_a_tool_never_seen_can_be_planned(run: Run, policy: str) -> None:
    args = ("plan", "change my flight", "--domain", "airline", "--policy", policy, *TINY)
    done = run(*args, "--horizon", "3", "--json")
    assert done.exit_code == 0, done.output
    assert 0 < len(json.loads(done.stdout)["sequence"]) <= 3


def test_what_cannot_work_is_said(run: Run, policy: str, tmp_path: Path) -> None:
    plan = ("plan", "hello", "--domain", "retail")
    LongTermMemory(7).save(tmp_path / "memory")
    for args, words in (
        ((*plan, "--policy", str(tmp_path / "none"), *TINY), "no such file"),
        ((*plan, "--policy", policy, "--seed", "1", *TINY), "has no effect"),
        (("plan", "\udcff", *plan[2:], "--policy", policy, *TINY), "not valid UTF-8"),
        ((*plan, "--policy", policy, "--memory", str(tmp_path / "memory"), *TINY), "7-d vectors"),
        ((*plan, "--policy", policy), "fitted with the encoder hashed-256"),
    ):
        done = run(*args)
        assert done.exit_code == 2, done.output
        assert words in " ".join(done.stderr.split())


def test_its_help_is_light(root: Path) -> None:
    code = (
        "import sys\nfrom progrl.cli import main\nsys.argv = ['progrl', 'plan', '--help']\n"
        "try:\n    main()\nfinally:\n    print('torch' in sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0
    assert "--policy" in done.stdout
    assert done.stderr == "False\n"


def test_it_takes_the_main_jobs_policy_and_what_that_recalls(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = str(Path("params.yaml").resolve())
    monkeypatch.chdir(tmp_path)
    tools = Path("models/grpo/tools")
    tools.parent.mkdir(parents=True)
    learned().save(tools)
    plan = ("plan", "hello", "--domain", "retail", "--params", params)
    plan = (*plan, "--set", "embedding.kind=hashed")
    assert run(*plan).exit_code == 0
    LongTermMemory(7).save(tools / "memory")
    done = run(*plan)
    assert done.exit_code == 2, done.output
    assert "7-d vectors" in " ".join(done.stderr.split())
