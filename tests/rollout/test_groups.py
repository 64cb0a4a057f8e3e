"""The episodes that training asks for: groups of one task and user, seeds that never collide."""

import copy
from pathlib import Path

from progrl.agent.seats import ModelAgent
from progrl.embedding import HashedEncoder
from progrl.rollout import EpisodeSpec
from progrl.seeds import Seed
from progrl.training.grpo import GrpoTrainer
from tests.rollout.desk import CONFIG, NotedWorld, OpenedEngine, model_agent, tasks, trained, world

STEPS, TASKS, GROUP, PROBES = 3, 4, 5, 6


def asked(folder: Path, run: int) -> list[EpisodeSpec]:
    """What a run of GRPO plays."""
    agent = model_agent()
    assert isinstance(agent.engine, OpenedEngine)
    plain = world()
    noted = NotedWorld(plain.domains, plain.users, plain.draw, plain.in_flight)
    grpo = CONFIG.grpo.model_copy(
        update={"steps": STEPS, "tasks": TASKS, "group": GROUP, "probe_every": STEPS}
    )
    GrpoTrainer(
        config=CONFIG.model_copy(update={"grpo": grpo}),
        model=copy.deepcopy(trained()[0]),
        sampler_agent=agent,
        greedy_agent=ModelAgent(agent.engine, agent.codec, 0.0, 8),
        sync=agent.engine.set_weights_from,
        world=noted,
        probe_world=noted,
        tasks=tasks(60),
        probe=tasks(70)[-PROBES:],
        encoder=HashedEncoder(),
        seed=Seed.root(run).child("grpo"),
        folder=folder,
        record=lambda row, seconds: None,
        progress=lambda done, total, text: None,
    ).run()
    return noted.asked


def test_seeds_form_one_tree_from_the_run_to_the_episode(tmp_path: Path) -> None:
    first = asked(tmp_path / "first", 1)
    training = [spec for spec in first if "step" in spec.tags]
    probes = [spec for spec in first if "probe" in spec.tags]
    assert (len(training), len(probes)) == (STEPS * TASKS * GROUP, 2 * PROBES)

    # Within a group the agent's seeds differ, the user is the same; no two groups share a user.
    assert len({spec.seed.value for spec in training}) == len(training)
    groups = [training[at : at + GROUP] for at in range(0, len(training), GROUP)]
    for group in groups:
        assert len({spec.task.id for spec in group}) == 1
        assert len({(spec.user_seed, spec.profile, spec.horizon) for spec in group}) == 1
        assert [spec.tags["episode"] for spec in group] == list(range(GROUP))
    assert len({group[0].user_seed for group in groups}) == len(groups)

    # The probe asks the same each time, so that its results can be compared.
    assert [(s.task.id, s.user_seed, s.seed) for s in probes[:PROBES]] == [
        (s.task.id, s.user_seed, s.seed) for s in probes[PROBES:]
    ]

    seeds = {s.seed.value for s in first} | {s.user_seed for s in first}
    other = asked(tmp_path / "other", 2)
    assert seeds.isdisjoint({s.seed.value for s in other} | {s.user_seed for s in other})
    again = asked(tmp_path / "again", 1)
    assert [(s.task.id, s.seed, s.user_seed) for s in again] == [
        (s.task.id, s.seed, s.user_seed) for s in first
    ]
