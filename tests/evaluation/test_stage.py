"""The stage on a small run: real tasks, users and models; the models have learned nothing."""

import shutil
from pathlib import Path

import pytest

from progrl.agent.model import make_model, save_model
from progrl.config import load_config
from progrl.config.orchestration import RandomAdvice
from progrl.dialogue.compact import CompactCodec, train_tokenizer
from progrl.dialogue.tasks import read_tasks, write_tasks
from progrl.dialogue.trajectories import read_trajectories
from progrl.environments.registry import domain
from progrl.errors import ConfigurationError, DataError
from progrl.evaluation.metrics import Result
from progrl.files import read_json
from progrl.seeds import Seed
from progrl.stages import Context, find_stage
from progrl.stages.evaluate import MODELS

GENERATE, STAGE = find_stage("generate"), find_stage("evaluate")
SMALL = (
    "generate.train_tasks=20",
    "generate.validation_tasks=4",
    "generate.test_tasks=5",
    "generate.dialogues=10",
    "generate.responses=60",
    "generate.pool=120",
    "grpo.probe_tasks=4",
    "sft.dialogues=10",
    "embedding.kind=hashed",
    "engine.slots=4",
    "engine.max_tokens=6",
    "agent.window=256",
    "evaluation.trials=2",
    "evaluation.horizon=3",
    "evaluation.bootstrap=100",
    "evaluation.examples=3",
    "threads=1",
)


@pytest.fixture(scope="module")
def config(request):
    return load_config(request.config.rootpath / "params.yaml", overrides=SMALL)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory, config):
    root = tmp_path_factory.mktemp("run")
    GENERATE.run(Context(config, root, root, root / "generate"))
    texts = [
        m.content
        for dialogue in read_trajectories(root / "data/dialogues/train.jsonl")
        for m in dialogue.history()
    ]
    codec = CompactCodec(train_tokenizer(texts, domain("retail").tools, 500))
    for name, folder in MODELS.items():
        seed = Seed.root(1).child("model", name).value
        model = make_model(
            vocabulary=codec.size, hidden=16, layers=1, heads=1, head_dim=16, ffn=32,
            window=256, seed=seed,
        )  # fmt: skip
        save_model(root / folder, model, codec)
    return root


@pytest.fixture(scope="module")
def context(run_folder, config):
    return Context(config, run_folder, run_folder, run_folder / "work")


@pytest.fixture(scope="module")
def figures(context):
    return STAGE.run(context)


def written(root: Path) -> dict[str, bytes]:
    files = [root / "metrics/evaluate.json", *sorted((root / "evaluation").iterdir())]
    return {file.name: file.read_bytes() for file in files}


def test_the_figures_that_sum_it_up(figures):
    assert figures["evaluate/retail/do_nothing/turns"] == 1.0
    assert figures["evaluate/airline/do_nothing/success"] == 0.0
    assert {"mean", "low", "high"} == {
        key.rsplit("/", 1)[1] for key in figures if key.startswith("evaluate/retail/grpo_minus_sft")
    }


def test_what_is_written(figures, run_folder):
    tree = read_json(run_folder / "metrics/evaluate.json")
    assert list(tree["benchmarks"]) == ["retail", "airline"]
    retail = tree["benchmarks"]["retail"]["agents"]
    assert list(retail) == ["do_nothing", "expert", "untrained", "sft", "grpo"]
    assert retail["expert"]["success"]["episodes"] == 10
    assert set(retail["expert"]["pass_k"]) == {"1", "2"}
    rows = read_json(run_folder / "evaluation/results.json")
    tests = read_tasks(run_folder / "data/tasks/airline_test.jsonl")
    results = [Result.from_json(row) for row in rows["airline"]["grpo"]]
    assert [(r.task, r.trial) for r in results] == [(t.id, j) for t in tests for j in (0, 1)]
    kept = {
        agent: read_trajectories(run_folder / f"evaluation/retail_{agent}.jsonl")
        for agent in retail
    }
    shown = [t.task_id for t in kept["sft"]]
    assert len(shown) == 3
    assert all([t.task_id for t in trajectories] == shown for trajectories in kept.values())


def test_interaction_and_tools_are_summed_up(figures, run_folder):
    tree = read_json(run_folder / "metrics/evaluate.json")
    assert list(tree["retention"]) == ["airline"]
    for benchmark in tree["benchmarks"].values():
        expert, nothing = (benchmark["agents"][name] for name in ("expert", "do_nothing"))
        assert expert["coherence"]["mean"] == expert["selection_accuracy"]["mean"] == 1
        assert nothing["selection_accuracy"]["mean"] == 0
        assert nothing["effective_turns"]["mean"] == nothing["satisfaction"]["mean"] == 0
        assert nothing["coherence"]["mean"] is None
        assert set(benchmark["tool_efficiency"]) == {"grpo_minus_sft", "sft_minus_untrained"}


def test_interrupted_anywhere_it_ends_with_the_same_bytes(figures, context, tmp_path):
    before = written(context.root)
    total = 5 * 2 * 5 * 2

    class Interrupted(Exception):
        pass

    for stop in (3, 37, 77):

        def progress(done: int, of: int, text: str = "", stop: int = stop) -> None:
            assert of == total
            if done == stop:
                raise Interrupted

        again = Context(
            context.config, context.root, context.root, tmp_path / "w", progress=progress
        )
        with pytest.raises(BaseException) as caught:
            STAGE.run(again)
        assert caught.group_contains(Interrupted)
    finished = sorted((tmp_path / "w/played").glob("*.jsonl"))
    times = [file.stat().st_mtime_ns for file in finished]
    assert len(finished) == 7
    assert STAGE.run(Context(context.config, context.root, context.root, tmp_path / "w")) == figures
    assert written(context.root) == before
    assert [file.stat().st_mtime_ns for file in finished] == times


def test_tasks_of_training_stop_it(figures, context, tmp_path):
    train = context.root / "data/tasks/retail_train.jsonl"
    content = train.read_bytes()
    leak = read_tasks(context.root / "data/tasks/airline_test.jsonl")[2]
    try:
        write_tasks(train, [*read_tasks(train), leak])
        with pytest.raises(DataError, match=f"share task {leak.id}"):
            STAGE.run(Context(context.config, context.root, context.root, tmp_path))
    finally:
        train.write_bytes(content)


def test_advice_is_held_against_none(figures, context, tmp_path):
    """With bad advice all models read hints; without any the trained one acts as it always has."""
    before = written(context.root)
    plain = read_json(context.root / "metrics/evaluate.json")
    assert "advice" not in plain and "advice.json" not in before
    changed = {"orchestration": RandomAdvice(kind="random", top=2, drop=0.0)}
    config = context.config.model_copy(update=changed)
    found = STAGE.run(Context(config, context.root, context.root, tmp_path / "w"))
    tree = read_json(context.root / "metrics/evaluate.json")
    rows = read_json(context.root / "evaluation/advice.json")
    for name, benchmark in tree["advice"]["benchmarks"].items():
        assert list(benchmark["agents"]) == ["random", "off"]
        expected = dict(plain["benchmarks"][name]["agents"]["grpo"])
        del expected["tool_consistency"]  # of all agents together
        assert benchmark["agents"]["off"] == expected
        assert found[f"evaluate/{name}/random_minus_off"] == benchmark["random_minus_off"]["mean"]
        assert list(tree["benchmarks"][name]["agents"]) == list(plain["benchmarks"][name]["agents"])
        assert list(rows[name]) == [*tree["benchmarks"][name]["agents"], "grpo_off"]
    read = read_trajectories(tmp_path / "w/played/retail_grpo.jsonl")
    silent = read_trajectories(tmp_path / "w/played/retail_grpo_off.jsonl")
    hint = 1 + 2 * 2
    assert [len(t.turns[0].context) - hint for t in read] == [
        len(t.turns[0].context) for t in silent
    ]
    STAGE.run(Context(context.config, context.root, context.root, tmp_path / "again"))
    assert written(context.root) == before


def test_agents_before_training_are_played_once_for_all_that_share_them(figures, context, tmp_path):
    root, before = context.root, written(context.root)
    shared = root / "played"
    shared.mkdir()
    try:
        for work in ("first", "second"):
            STAGE.run(Context(context.config, root, root, tmp_path / work))
            own = sorted(path.name for path in (tmp_path / work / "played").glob("*.jsonl"))
            assert own == ["airline_grpo.jsonl", "retail_grpo.jsonl"]
            made = {path: path.stat().st_mtime_ns for path in shared.rglob("*.jsonl")}
            if work == "first":
                first = made
        assert made == first and len(first) == 4 * 2
        assert len({path.parent for path in first}) == 3  # each model has a digest of its own
        assert written(root) == before
        engine = context.config.engine.model_copy(update={"max_tokens": 5})
        other = context.config.model_copy(update={"engine": engine})
        STAGE.run(Context(other, root, root, tmp_path / "other"))
        assert len(list(shared.rglob("*.jsonl"))) == 2 * len(first)
    finally:
        shutil.rmtree(shared)
        STAGE.run(Context(context.config, root, root, tmp_path / "again"))
    assert written(root) == before


def test_a_model_without_its_tool_policy_cannot_be_advised(figures, context, tmp_path, request):
    hint = load_config(request.config.rootpath / "params.yaml", "hint").orchestration
    config = context.config.model_copy(update={"orchestration": hint})
    with pytest.raises(ConfigurationError, match=r"models/sft has no tool policy.*kind=off"):
        STAGE.run(Context(config, context.root, context.root, tmp_path))
