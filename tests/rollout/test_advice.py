"""Hints from the tool policy to the loss: read and never learned, alike within a group, resumed."""

import asyncio
import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

from progrl.agent.advice import Advisor
from progrl.agent.engines.contracts import Sample, SamplingParams
from progrl.agent.seats import ModelAgent
from progrl.config.orchestration import HintAdvice
from progrl.dialogue.trajectories import Trajectory
from progrl.embedding import HashedEncoder
from progrl.orchestration import (
    Catalogue,
    FoldedPolicies,
    Improver,
    Orchestrator,
    PolicyAdvisor,
    RandomAdvisor,
    fit_folds,
)
from progrl.stages.sft import encode
from progrl.training.grpo import GrpoTrainer
from progrl.training.rows import Row
from progrl.training.tools import ToolLearning
from progrl.training.update import Group, example
from tests.builders import make_task
from tests.orchestration.desk import configured, dialogues
from tests.rollout.desk import CONFIG, RETAIL, ROOT, model_agent, specs, tasks, trained, world

ENCODER = HashedEncoder()
CATALOGUES = {"retail": Catalogue.of(RETAIL.tools, ENCODER)}
HINT = HintAdvice(kind="hint", top=2, drop=0.3, policy=configured(steps=30))


@cache
def fitted() -> FoldedPolicies:
    return fit_folds(HINT.policy, CATALOGUES, dialogues("train", 60), ENCODER, 0.5, ROOT)


def advisor(policies: FoldedPolicies, orchestrator: Orchestrator) -> PolicyAdvisor:
    return PolicyAdvisor(HINT, orchestrator, policies.for_training, HINT.drop, ROOT)


def played(advised: Advisor | None, each: int = 4) -> list[Trajectory]:
    plain = model_agent()
    agent = ModelAgent(plain.engine, plain.codec, 1.0, 24, advisor=advised)
    return world().play(specs(tasks(8), horizon=5, each=each), agent)


@cache
def hinted() -> list[Trajectory]:
    return played(advisor(fitted(), Orchestrator(ENCODER)))


def hint_of(ids: Sequence[int]) -> list[int]:
    """The part of a context that is a hint, from its marker on; empty where there is none."""
    mark = trained()[1].open("", (), "", (("talk", 0.5),))[-4]
    return list(ids[ids.index(mark) : -1]) if mark in ids else []


def test_without_advice_the_very_same_is_sampled() -> None:
    """Advice that is never given changes no id and no draw."""
    silent = played(RandomAdvisor(2, 1.0, ROOT))
    for with_it, without in zip(silent, played(None), strict=True):
        assert with_it.tokens() == without.tokens()
        assert [t.logprobs for t in with_it.turns] == [t.logprobs for t in without.turns]


def test_hints_are_read_and_no_part_of_the_loss() -> None:
    turns = [turn for t in hinted() for turn in t.turns]
    hints = [hint_of(turn.context) for turn in turns]
    assert 0.5 < sum(map(bool, hints)) / len(turns) < 0.9
    assert {len(hint) for hint in hints} == {0, 5}
    for trajectory in hinted():
        ready, old = example(trajectory)
        learned = [i for i, m in zip(ready.ids, ready.mask, strict=True) if m]
        assert learned == [i for turn in trajectory.turns for i in turn.sampled]
        assert len(old) == len(learned)


def test_a_groups_episodes_read_the_same_until_they_part() -> None:
    shared = 0
    for at in range(0, len(hinted()), 4):
        seen: dict[tuple[int, ...], tuple[int, ...]] = {}
        for trajectory in hinted()[at : at + 4]:
            before: tuple[int, ...] = ()
            for turn in trajectory.turns:
                hint = tuple(hint_of(turn.context))
                read = (*before, *turn.context[: len(turn.context) - len(hint) - 1])
                shared += read in seen
                assert seen.setdefault(read, hint) == hint
                before = (*before, *turn.context, *turn.sampled)
    assert shared > 20


class Recital:
    """An engine and its one conversation, in which a dialogue's own messages are sampled."""

    def __init__(self, messages: Sequence[list[int]]) -> None:
        self.messages = list(messages)

    def open(self) -> "Recital":
        return self

    def load_weights(self, folder: Path) -> None:
        pass

    def extend(self, ids: Sequence[int]) -> None:
        pass

    async def sample(self, params: SamplingParams) -> Sample:
        ids = self.messages.pop(0)
        return Sample(ids, [0.0] * len(ids), "stop")

    def close(self) -> None:
        pass


def test_dialogues_to_learn_from_are_laid_out_as_episodes_are() -> None:
    codec = trained()[1]
    hints = 0
    for dialogue in dialogues("train", 60)[:10]:
        advised = advisor(fitted(), Orchestrator(ENCODER))
        made = encode(dialogue, codec, RETAIL, advised)
        recital = Recital([codec.act(t.action) for t in dialogue.turns if t.action is not None])
        agent = ModelAgent(recital, codec, 1.0, 24, advisor=advised)
        task = make_task(id=dialogue.task_id, query=dialogue.query)
        seat = agent.seat(task, RETAIL, RETAIL.environment(), RETAIL.tools, ROOT)
        ids: list[int] = []
        mask: list[bool] = []
        for message in dialogue.history()[::2][: len(dialogue.turns)]:
            decision = asyncio.run(seat.act(message))
            ids += [*decision.context, *decision.sampled]
            mask += [False] * len(decision.context) + [True] * len(decision.sampled)
            hints += bool(hint_of(decision.context))
        assert (made.ids[: len(ids)], made.mask[: len(ids)]) == (ids, mask)
    assert hints > 20


class Talkative(GrpoTrainer):
    """Pays for turns: at what is asked of agents so small a model earns nothing."""

    def _groups(self, *args: Any) -> list[Group]:
        return [
            replace(g, scores=[float(len(t.turns)) for t in g.trajectories if t.valid])
            for g in super()._groups(*args)
        ]


class Killed(Exception):
    pass


def train(folder: Path, stop: int | None = None) -> tuple[list[Row], dict[str, Any]]:
    """Four steps of GRPO with hints, or fewer; its rows and all that it leaves."""
    plain = model_agent()
    policies = copy.deepcopy(fitted())
    orchestrator = Orchestrator(ENCODER)
    improver = Improver(policies, HINT.policy.improvement, CATALOGUES, ENCODER)
    changed = {"steps": 4, "tasks": 6, "group": 4, "probe_every": 2, "checkpoint_every": 1}

    def record(row: Row, seconds: dict[str, float]) -> None:
        if stop is not None and row["step"] == stop:
            raise Killed

    trainer = Talkative(
        config=CONFIG.model_copy(
            update={
                "grpo": CONFIG.grpo.model_copy(update=changed),
                "memory": CONFIG.memory.model_copy(update={"store_above": 0.0}),
            }
        ),
        model=copy.deepcopy(trained()[0]),
        sampler_agent=ModelAgent(
            plain.engine, plain.codec, 1.0, 24, advisor=advisor(policies, orchestrator)
        ),
        greedy_agent=ModelAgent(
            plain.engine,
            plain.codec,
            0.0,
            24,
            advisor=PolicyAdvisor(HINT, orchestrator, lambda task: policies.whole, 0.0, ROOT),
        ),
        sync=plain.engine.set_weights_from,  # type: ignore[attr-defined]
        world=world(),
        probe_world=world(),
        tasks=tasks(60),
        probe=tasks(70)[-6:],
        encoder=ENCODER,
        seed=ROOT,
        folder=folder,
        record=record,
        progress=lambda done, total, text: None,
        tools=ToolLearning(orchestrator, improver),
    )
    rows = trainer.run()
    left = {
        **{f"model/{n}": p for n, p in trainer.model.named_parameters()},
        **{f"tools/{n}": p.clone() for n, p in improver.tensors().items()},
    }
    return rows, {"tensors": left, "memory": trainer.long.state_dict()}


def test_the_policy_learns_and_goes_on_where_a_killed_run_was(tmp_path: Path) -> None:
    rows, left = train(tmp_path / "left")
    assert sum(row["tools_decisions"] for row in rows[1:]) > 0
    before = Improver(fitted(), HINT.policy.improvement, CATALOGUES, ENCODER).tensors()
    assert any(not torch.equal(left["tensors"][f"tools/{n}"], t) for n, t in before.items())

    for stop in (2, 3):
        with pytest.raises(Killed):
            train(tmp_path / "killed", stop)
    again, resumed = train(tmp_path / "killed")
    assert again == rows
    assert resumed["memory"] == left["memory"]
    assert resumed["tensors"].keys() == left["tensors"].keys()
    for name, tensor in left["tensors"].items():
        assert torch.equal(resumed["tensors"][name], tensor), name
