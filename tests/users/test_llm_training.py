"""Training goes on while three requests to the user's model in ten fail."""

import copy
import math
from pathlib import Path

import pytest

from progrl.agent.engines.local import LocalEngine
from progrl.agent.seats import ModelAgent
from progrl.dialogue.trajectories import record
from progrl.embedding import HashedEncoder
from progrl.seeds import Seed
from progrl.training.grpo import GrpoTrainer
from progrl.training.rows import Row
from progrl.training.update import Group
from progrl.users import llm_endpoint
from progrl.users.llm import LlmUser
from tests.rollout.desk import CONFIG, NotedWorld, model_agent, specs, tasks, trained, world
from tests.rollout.test_faults import scored
from tests.users.llm_server import Proxy, Server, helpful, serving, settings

TASKS, GROUP, STEPS = 6, 4, 2


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm_endpoint, "BACK_OFF", 0.01)


def test_a_lost_episode_is_no_part_of_its_groups_baseline(tmp_path: Path) -> None:
    size, live, lost = 6, 0, 0
    given = specs(tasks(12), horizon=8, each=size)
    server = Server(helpful)
    proxy = Proxy(server, rate=0.3)
    with serving(server), serving(proxy):
        calm = LlmUser(settings(server.base_url), tmp_path / "calm")
        whole = world(user=calm, in_flight=64).play(given, model_agent(64))
        user = LlmUser(settings(proxy.base_url, retries=0, timeout=2.0), tmp_path / "rough")
        holed = world(user=user, in_flight=64).play(given, model_agent(64))
        calm.close()
        user.close()
    assert all(t.valid for t in whole)
    for at in range(0, len(given), size):
        full, part = whole[at : at + size], holed[at : at + size]
        pairs = [(t, other) for t, other in zip(part, full, strict=True) if t.valid]
        assert all(record(t) == record(other) for t, other in pairs)
        lost += size - len(pairs)
        survivors = [other for _, other in pairs]
        episodes = Group(part, scored(part)).episodes(CONFIG.grpo)
        expected = Group(survivors, scored(survivors)).episodes(CONFIG.grpo)
        assert [e.advantages for e in episodes] == [e.advantages for e in expected]
        if episodes:
            live += 1
            assert len(episodes) == len(pairs)
            assert math.isclose(sum(sum(e.advantages) for e in episodes), 0.0, abs_tol=1e-9)
    assert lost == user.spent()["lost"] + user.spent()["given_up"] > 0
    assert live > 3


def test_grpo_goes_on_and_counts_what_it_lost(tmp_path: Path) -> None:
    server, rows = Server(helpful), list[Row]()
    proxy = Proxy(server, rate=0.3)
    with serving(server), serving(proxy):
        user = LlmUser(settings(proxy.base_url, retries=0, timeout=2.0), tmp_path)
        plain = world(user=user)
        kept = NotedWorld(plain.domains, plain.users, plain.draw, plain.in_flight)
        agent = model_agent()
        assert isinstance(agent.engine, LocalEngine)
        changes = {
            "steps": STEPS, "tasks": TASKS, "group": GROUP, "probe_every": STEPS,
            "max_fault_share": 0.9,
        }  # fmt: skip
        GrpoTrainer(
            config=CONFIG.model_copy(
                update={
                    "grpo": CONFIG.grpo.model_copy(update=changes),
                    "horizon": CONFIG.horizon.model_copy(update={"start": 8}),
                }
            ),
            model=copy.deepcopy(trained()[0]),
            sampler_agent=agent,
            greedy_agent=ModelAgent(agent.engine, agent.codec, 0.0, 8),
            sync=agent.engine.set_weights_from,
            world=kept,
            probe_world=plain,
            tasks=tasks(60),
            probe=tasks(64)[-4:],
            encoder=HashedEncoder(),
            seed=Seed.root(3).child("grpo"),
            folder=tmp_path / "checkpoints",
            record=lambda row, seconds: rows.append(row),
            progress=lambda done, total, text: None,
        ).run()
        user.close()
    taken = [row for row in rows if row["step"] > 0]
    steps = [played for played in kept.played if "step" in played[0].tags]
    assert len(taken) == STEPS
    for row, played in zip(taken, steps, strict=True):
        lost = [t for t in played if not t.valid]
        assert row["faults"] == len(lost)
        assert row["episodes"] in {len(played), len(played) - len(lost)}
        assert all("UserFault" in t.fault for t in lost)
    assert kept.spent()["user/requests"] == proxy.done.total() > 0
    assert sum(row["faults"] for row in taken) > 0
