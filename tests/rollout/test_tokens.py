"""From the collector to the loss: the very ids that were sampled, and not one other."""

from collections.abc import Sequence

import pytest
import torch

from progrl.agent.engines.contracts import Sample, SamplingParams
from progrl.agent.engines.local import LocalConversation
from progrl.agent.seats import ModelAgent, Seat
from progrl.dialogue.messages import ToolSpec
from progrl.dialogue.tasks import Task
from progrl.environments.contracts import Domain, Environment
from progrl.seeds import Seed
from progrl.training.batching import gather, microbatches
from progrl.training.scoring import Scorer
from progrl.training.update import example
from tests.rollout.desk import OpenedEngine, model_agent, specs, tasks, trained, world

EPISODES = 1000


class NotedAgent(ModelAgent):
    """Keeps each episode's conversation, and what the engine sampled in it, by the seed."""

    def __init__(self) -> None:
        agent = model_agent(64)
        super().__init__(agent.engine, agent.codec, agent.temperature, agent.max_tokens)
        self.read: dict[int, LocalConversation] = {}
        self.samples: dict[int, list[Sample]] = {}

    def seat(
        self,
        task: Task,
        domain: Domain,
        environment: Environment,
        tools: Sequence[ToolSpec],
        seed: Seed,
    ) -> Seat:
        assert isinstance(self.engine, OpenedEngine)
        seat = super().seat(task, domain, environment, tools, seed)
        conversation = self.engine.opened[-1]
        self.read[seed.value] = conversation
        noted = self.samples[seed.value] = []
        sample = conversation.sample

        async def note(params: SamplingParams) -> Sample:
            noted.append(await sample(params))
            return noted[-1]

        conversation.sample = note  # type: ignore[method-assign]
        return seat


@pytest.mark.slow
def test_what_the_engine_sampled_is_what_the_loss_is_over() -> None:
    agent = NotedAgent()
    given = specs(tasks(EPISODES // 4), horizon=6, each=4)
    played = world(in_flight=64, family="all").play(given, agent)
    assert len(played) == EPISODES
    assert sum(len(t.turns) > 1 for t in played) > EPISODES / 2
    assert {turn.source for t in played for turn in t.turns} == {"", "tool", "user"}

    examples = [example(trajectory) for trajectory in played]
    for trajectory, (ready, old) in zip(played, examples, strict=True):
        samples = agent.samples[trajectory.seed]
        assert ready.ids == agent.read[trajectory.seed].ids
        learned = [i for i, m in zip(ready.ids, ready.mask, strict=True) if m]
        assert learned == [i for sample in samples for i in sample.ids]
        assert list(old) == [p for sample in samples for p in sample.logprobs]
        assert ready.learned == len(learned) > 0

    # The trainer finds the probabilities that the engine sampled with: it reads what that has read.
    scorer = Scorer(trained()[0]).eval()
    for micro in microbatches([e for e, _ in examples], 8192):
        with torch.no_grad():
            logprobs = scorer(micro.inputs, agent.temperature)
        old = gather(micro, [old for _, old in examples])
        torch.testing.assert_close(logprobs, old, atol=1e-4, rtol=0)
