"""`progrl rollout`, `play`, `view` and `environments`."""

import json
from itertools import islice
from pathlib import Path

import pytest

from progrl.cli.episodes import find_task, tasks_of
from progrl.cli.play import briefing
from progrl.cli.view import rendered, spoken
from progrl.dialogue.messages import Say, ToolCall
from progrl.dialogue.tasks import Task, write_tasks
from progrl.dialogue.trajectories import (
    End,
    Outcome,
    Trajectory,
    Turn,
    read_trajectories,
    write_trajectories,
)
from progrl.embedding import encoder
from progrl.environments.registry import domain
from progrl.errors import ConfigurationError
from progrl.seeds import Seed
from progrl.users.replies import build_reply_memory
from tests.cli.conftest import Run

TINY = ("--profile", "tiny")
Option = tuple[str, str]


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Option:
    """The option that names a folder with wordings, so that they are not made at each call."""
    folder = tmp_path_factory.mktemp("root")
    for name in ("retail", "airline"):
        memory = build_reply_memory(domain(name, {}), encoder("hashed", None), 1, 120, 400)
        memory.save(folder / "data" / "users" / name)
    return "--root", str(folder)


def _task(level: int) -> Task:
    tasks = tasks_of(domain("retail", {}), "validation", Seed.root(1))
    return next(task for task in islice(tasks, 200) if task.level == level)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("play", "function", *TINY, "--as", "user"), "function asks its user nothing"),
        (("transfer", "a=no-such-folder", *TINY), "no-such-folder: no such folder"),
        (("rollout", *TINY, "--agent", "no-such-model"), "`make run` makes models/grpo"),
        (("view", "docs"), "It stands beside each file of trajectories"),
    ],
)
def test_what_cannot_be_played_or_shown_is_said_at_once(
    words: tuple[str, ...], said: str, run: Run
) -> None:
    done = run(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in " ".join(done.stderr.split())


def test_the_expert_solves_what_it_is_given(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    args = ("--agent", "expert", "--episodes", "10", "--output", str(out), "--json")
    done = run("rollout", *TINY, *args)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["episodes"] == 10
    assert told["success"] == 1.0
    assert told["faults"] == 0
    assert told["turns_per_second"] > 0
    trajectories = read_trajectories(out)
    assert len(trajectories) == 10
    assert told["turns"] == sum(len(t.turns) for t in trajectories) / 10
    assert all(t.tags["agent"] == "expert" for t in trajectories)


def test_the_same_seed_gives_the_same_episodes(run: Run, tmp_path: Path, users: Option) -> None:
    contents = []
    for name, seed in (("a", "5"), ("b", "5"), ("c", "6")):
        out = tmp_path / f"{name}.jsonl"
        run("rollout", *TINY, *users, "--agent", "random", "--seed", seed, "--output", str(out))
        contents.append(out.read_bytes())
    assert contents[0] == contents[1]
    assert contents[0] != contents[2]


def test_the_horizon_and_the_other_domain(run: Run, tmp_path: Path, users: Option) -> None:
    out = tmp_path / "a.jsonl"
    args = ("--environment", "airline", "--agent", "do_nothing", "--split", "test")
    assert run("rollout", *TINY, *users, *args, "--output", str(out)).exit_code == 0
    assert {(t.domain, len(t.turns)) for t in read_trajectories(out)} == {("airline", 1)}
    run("rollout", *TINY, *users, "--agent", "expert", "--horizon", "2", "--output", str(out))
    assert max(len(t.turns) for t in read_trajectories(out)) == 2


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--agent", "nobody"], "neither one of do_nothing, expert, random nor the folder"),
        (["--temperature", "1"], "has no effect"),
        (["--environment", "telecom"], "no domain 'telecom'"),
        (["--output", "a.csv"], "ends in .jsonl"),
        (["--agent", "configs"], "configs"),
    ],
)
def test_rollouts_that_cannot_be(args: list[str], message: str, run: Run, users: Option) -> None:
    done = run("rollout", *TINY, *users, *args)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_person_is_the_agent(run: Run, users: Option) -> None:
    task = _task(1)
    done = run(
        "play", "retail", *TINY, *users, "--as", "agent", "--task", task.id,
        typed="\n/tools\n/call find_user email=x@y.z\n/call fly\nwho are you ?\n/close bye\n",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert task.query in done.stdout
    assert "find_user [email] [name] [zip]: Find" in done.stdout
    assert "tool:  error: no such user" in done.stdout
    assert "fly" in done.stdout
    assert "closed after 4 turns; expert: " in done.stdout


def test_a_person_is_the_user(run: Run, users: Option) -> None:
    task = _task(3)
    view = domain("retail", {}).user_view(task)
    answers = {label: fact for fact in view.facts for label in [view.labels[fact.name]]}
    typed = "".join(f"it is {fact.value}\nyes\n" for fact in answers.values()) * 3
    done = run(
        "play", "retail", *TINY, *users, "--as", "user", "--agent", "expert", "--task", task.id,
        typed=typed,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert f"What you want:\n  {view.wishes[0].text}" in done.stdout
    for label, fact in answers.items():
        assert f"  {label}: {fact.value}\n" in done.stdout
    assert "agent: " in done.stdout


@pytest.mark.parametrize("typed", ["/quit\n", "", "hello\n/quit\n"])
@pytest.mark.parametrize("role", ["agent", "user"])
def test_leaving_a_game(role: str, typed: str, run: Run, users: Option) -> None:
    done = run("play", "retail", *TINY, *users, "--as", role, "--task", _task(3).id, typed=typed)
    assert done.exit_code == 0, done.output
    assert done.stdout.rstrip().endswith("Ended.")


def test_the_briefing_keeps_what_the_agent_is_to_find_out() -> None:
    retail = domain("retail", {})
    tasks = list(islice(tasks_of(retail, "train", Seed.root(1)), 300))
    known = [
        w for t in tasks for w in retail.user_view(t).wishes if w.kind == "know" and w.mentions
    ]
    assert known
    for task in tasks:
        view = retail.user_view(task)
        text = "\n".join(line.plain for line in briefing(view))
        facts = " ".join(fact.value for fact in view.facts)
        for wish in view.wishes:
            for value in wish.mentions if wish.kind == "know" else ():
                assert value in facts or value not in text.replace(facts, "").split()


def test_tasks_are_found_by_their_id(tmp_path: Path) -> None:
    retail, node = domain("retail", {}), Seed.root(1)
    for split in ("train", "validation", "test"):
        task = next(islice(tasks_of(retail, split, node), 7, None))
        assert find_task(retail, node, task.id, tmp_path, most=10) == task
    with pytest.raises(ConfigurationError, match="No task retail-0"):
        find_task(retail, node, "retail-0000000000000000", tmp_path, most=10)
    write_tasks(tmp_path / "data" / "tasks" / "retail_test.jsonl", [task])
    assert find_task(retail, Seed.root(2), task.id, tmp_path, most=1) == task


@pytest.fixture
def trajectory() -> Trajectory:
    turns = [
        Turn(
            ToolCall("find_user", {"email": "a@b.c"}),
            "",
            "user u1",
            source="tool",
            context=[1, 2],
            sampled=[3, 4],
            logprobs=[-0.1, -0.2],
            milestones=("found",),
            gain=0.5,
        ),
        Turn(None, "blah", "error: no action", source="tool", failed=True, sampled=[6]),
        Turn(Say("Shall I [bold]go[/bold]?"), "", "yes please", source="user", act="confirm"),
        Turn(Say("Done.", True), ""),
    ]
    return Trajectory(
        task_id="retail-0123456789abcdef",
        domain="retail",
        family="cancel",
        level=1,
        expert_turns=2,
        query="Hi, cancel my order W12.",
        horizon=4,
        seed=7,
        turns=turns,
        end=End.CLOSED,
        outcome=Outcome(True, 1.0, ("found",), True, 1.0),
        tags={"agent": "sft"},
    )


def test_a_trajectory_reads_like_a_conversation(
    run: Run, tmp_path: Path, trajectory: Trajectory
) -> None:
    path = tmp_path / "one.jsonl"
    write_trajectories(path, [trajectory])
    assert run("view", str(path)).stdout == (
        "retail-0123456789abcdef: cancel, level 1, horizon 4 (agent sft)\n"
        "user:  Hi, cancel my order W12.\n"
        "agent: -> find_user(email='a@b.c')\n"
        "tool:  user u1  [found]\n"
        "agent: blah  [no valid action]\n"
        "tool:  error: no action  [failed]\n"
        "agent: Shall I [bold]go[/bold]?\n"
        "user:  yes please  [confirm]\n"
        "agent: Done.  [closes]\n"
        "\n"
        "closed after 4 turns; expert: 2; success; progress 1.00; policy kept; milestones: found\n"
    )
    shown = run("view", str(path), "--tokens").stdout
    assert "read 2, sampled 2: 3(-0.10) 4(-0.20)" in shown
    assert json.loads(run("view", str(path), "--json").stdout)["family"] == "cancel"


def test_several_trajectories_are_listed(run: Run, tmp_path: Path, trajectory: Trajectory) -> None:
    path = tmp_path / "two.jsonl"
    write_trajectories(path, [trajectory, trajectory])
    listed = run("view", str(path)).stdout.splitlines()
    assert listed[0].split() == ["index", "task", "family", "level", "turns", "end", "success"]
    assert len(listed) == 3
    assert "find_user" in run("view", str(path), "--index", "1").stdout
    assert "find_user" in run("view", str(path), "--task", trajectory.task_id).stdout
    for args in (["--index", "2"], ["--task", "none"]):
        assert run("view", str(path), *args).exit_code == 2


def test_a_corrupted_line_is_named(run: Run, tmp_path: Path, trajectory: Trajectory) -> None:
    path = tmp_path / "two.jsonl"
    write_trajectories(path, [trajectory, trajectory])
    lines = path.read_text().splitlines()
    path.write_text(lines[0] + "\n" + lines[1][:-20] + "\n")
    done = run("view", str(path))
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{path}, line 2: not valid JSON")


def test_faults_and_odd_text_are_shown(trajectory: Trajectory) -> None:
    from rich.console import Console

    trajectory.end, trajectory.fault, trajectory.outcome = End.FAULT, "EngineFault: gone", None
    console = Console(width=100, record=True, markup=False)
    with console.capture() as shown:
        console.print(rendered(trajectory))
    assert "fault after 4 turns; expert: 2; fault: EngineFault: gone" in shown.get()
    assert "\x1b" not in spoken("agent", "\x1b[2Jgone\x07").plain


def test_the_domains_are_described(run: Run) -> None:
    entries = json.loads(run("environments", "--json").stdout)
    told = {entry["name"]: entry for entry in entries if "problem" not in entry}
    assert {"retail", "airline"} <= set(told)
    # A domain whose packages are missing is listed, with what installs them.
    assert all("pip install" in entry["problem"] for entry in entries if "problem" in entry)
    retail = told["retail"]
    assert (retail["use"], retail["origin"]) == ("train", "progrl")
    assert told["airline"]["use"] == "held out"
    assert set(retail["writes"]) < set(retail["tools"])
    assert {family["level"] for family in retail["families"]} == {1, 2, 3, 4, 5}
    assert retail["tasks"] == {"train": None, "validation": None, "test": None}
    assert retail["choices"] is None
    assert told["function"]["choices"] == ["action", "search", "answer", "finish"]
    assert told["search"]["choices"] == ["search", "answer", "finish"]
    assert told["telepathy"]["tools"] == ["interact_with_env"]
    assert {told[name]["origin"] for name in ("function", "travel")} == {"progrl"}
    gyms = {"function", "intention", "persuade", "search", "tau", "telepathy", "travel", "turtle"}
    assert {name for name in told if told[name]["tools"] == ["interact_with_env"]} >= gyms
    for name in sorted(gyms):
        assert {family["level"] for family in told[name]["families"]} == {1, 2, 3, 4, 5}
        assert told[name]["users"] == ["scripted", "llm", "human"]
    table = run("environments").stdout
    assert "unlimited" in table


def test_gyms_need_no_wordings_and_report_rewards_of_their_own(run: Run, tmp_path: Path) -> None:
    for name, agent, least in (("function", "expert", 1.0), ("travel", "expert", 1.0)):
        args = ("--environment", name, "--agent", agent, "--episodes", "10", "--json")
        told = json.loads(run("rollout", *TINY, *args, "--root", str(tmp_path)).stdout)
        assert told["success"] == 1.0
        assert told["reward"] >= least
    args = ("--environment", "telepathy", "--agent", "do_nothing", "--episodes", "5", "--json")
    told = json.loads(run("rollout", *TINY, *args, "--root", str(tmp_path)).stdout)
    assert (told["success"], told["reward"]) == (0.0, 0.0)


def test_retail_can_be_played_by_three_choices(run: Run, users: Option) -> None:
    options = ("--set", "domains.options={retail: {interface: three_choice}}")
    told = json.loads(run("rollout", *TINY, *users, *options, "--episodes", "10", "--json").stdout)
    assert (told["success"], told["faults"]) == (1.0, 0)
