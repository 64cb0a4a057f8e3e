"""A retail desk whose parts can be watched and can be made to fail."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from progrl.agent.engines.local import LocalConversation, LocalEngine
from progrl.agent.model import make_model
from progrl.agent.seats import Agent, ExpertAgent, ModelAgent, Seat
from progrl.config import load_config
from progrl.dialogue.compact import CompactCodec, train_tokenizer
from progrl.dialogue.messages import Action, Message, ToolCall, ToolSpec
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import Trajectory
from progrl.dialogue.users import UserReply, UserView
from progrl.embedding import HashedEncoder
from progrl.environments.contracts import Domain, Environment, StepResult
from progrl.environments.retail import Retail
from progrl.environments.service import ServiceEnvironment
from progrl.rollout import Clock, EpisodeSpec, World
from progrl.seeds import Seed
from progrl.stages.sft import encode
from progrl.training.sft import SftTrainer
from progrl.users.contracts import Profile, UserSimulator
from progrl.users.profiles import draw
from progrl.users.replies import ReplyMemory, build_reply_memory
from progrl.users.scripted import ScriptedUser

CONFIG = load_config(Path(__file__).parents[2] / "params.yaml", "tiny")
RETAIL = Retail()
ROOT = Seed.root(11)

StepHook = Callable[[Task, int], None]


class WatchedEnvironment(ServiceEnvironment):
    """Notes what it is given and what it gives back; `hook` is called before each step."""

    notes: "Notes"

    def reset(self, task: Task) -> tuple[ToolSpec, ...]:
        self._task, self._steps = task, 0
        return super().reset(task)

    def step(self, action: Action) -> StepResult:
        self._steps += 1
        self.notes.actions.setdefault(self._task.id, []).append(action)
        self.notes.hook(self._task, self._steps)
        result = super().step(action)
        if isinstance(action, ToolCall):
            self.notes.shown.setdefault(self._task.id, []).append(result.observation)
        return result

    def hear(self, reply: UserReply) -> StepResult:
        self.notes.heard.setdefault(self._task.id, []).append(reply.text)
        return super().hear(reply)


class Notes:
    """By task: actions, the user's words, tools' results, as a `WatchedRetail` saw them."""

    def __init__(self, hook: StepHook | None = None) -> None:
        self.actions: dict[str, list[Action]] = {}
        self.heard: dict[str, list[str]] = {}
        self.shown: dict[str, list[str]] = {}
        self.hook: StepHook = hook or (lambda task, step: None)


class WatchedRetail(Retail):
    """The domain `retail` over watched environments."""

    def __init__(self, notes: Notes) -> None:
        super().__init__()
        self.notes = notes

    def environment(self) -> ServiceEnvironment:
        environment = WatchedEnvironment(self.service, self._start)
        environment.notes = self.notes
        return environment


class WatchedAgent:
    """Another agent, of which is known how many seats are taken; `left` is told whose one ends."""

    def __init__(self, agent: Agent) -> None:
        self.agent, self.name = agent, agent.name
        self.taken = self.most = 0
        self.left: Callable[[str], None] = lambda task: None

    def seat(
        self,
        task: Task,
        domain: Domain,
        environment: Environment,
        tools: Sequence[ToolSpec],
        seed: Seed,
    ) -> Seat:
        self.taken += 1
        self.most = max(self.most, self.taken)
        seat = self.agent.seat(task, domain, environment, tools, seed)
        close = seat.close

        def leave() -> None:
            self.taken -= 1
            self.left(task.id)
            close()

        seat.close = leave  # type: ignore[method-assign]
        return seat


@dataclass(frozen=True)
class NotedWorld(World):
    """Keeps what it is asked to play, and what was played, a list a call."""

    asked: list[EpisodeSpec] = field(default_factory=list)
    played: list[list[Trajectory]] = field(default_factory=list)

    def play(
        self,
        specs: Sequence[EpisodeSpec],
        agent: Agent,
        clock: Clock | None = None,
        done: Callable[[int], None] | None = None,
    ) -> list[Trajectory]:
        self.asked.extend(specs)
        self.played.append(super().play(specs, agent, clock, done))
        return self.played[-1]


class OpenedEngine(LocalEngine):
    """Keeps the conversations it has opened."""

    opened: list[LocalConversation]

    def open(self) -> LocalConversation:
        conversation = super().open()
        self.opened.append(conversation)
        return conversation


class HookedUser:
    """A user before whose replies `hook` is awaited."""

    def __init__(self, hook: Callable[[UserView], Any]) -> None:
        self.hook, self.user = hook, ScriptedUser(memory())

    async def reply(
        self, history: Sequence[Message], view: UserView, profile: Profile
    ) -> UserReply:
        await self.hook(view)
        return await self.user.reply(history, view, profile)


@cache
def memory() -> ReplyMemory:
    """A small reply memory."""
    return build_reply_memory(RETAIL, HashedEncoder(), 1, 120, 400)


@cache
def tasks(count: int = 24) -> list[Task]:
    """Training tasks of all levels."""
    return list(islice(RETAIL.tasks("train", 5), count))


def world(
    domain: Domain = RETAIL,
    user: UserSimulator | None = None,
    in_flight: int = 32,
    family: str = "a",
) -> World:
    """Retail with a scripted user."""
    user = user or ScriptedUser(memory())
    return World({"retail": domain}, {"retail": user}, lambda seed: draw(family, seed), in_flight)


def specs(
    some: Sequence[Task], horizon: int = 20, each: int = 1, family: str = "a"
) -> list[EpisodeSpec]:
    """`each` episodes of a task, of one user seed and seeds of their own."""
    return [
        world(family=family).spec(
            task,
            ROOT.child("task", task.id),
            ROOT.child("task", task.id).child("episode", number),
            horizon,
            {"episode": number},
        )
        for task in some
        for number in range(each)
    ]


@cache
def trained() -> tuple[Any, CompactCodec]:
    """A tiny model that has seen enough dialogues to talk and to call, well or not."""
    dialogues: list[Trajectory] = world().play(specs(tasks(100)), ExpertAgent())
    texts = [m.content for d in dialogues for m in d.history() if m.content]
    codec = CompactCodec(train_tokenizer(texts, RETAIL.tools, 512))
    model = make_model(
        vocabulary=codec.size, hidden=32, layers=1, heads=2, head_dim=16, ffn=32, seed=1
    )
    config = CONFIG.sft.model_copy(update={"steps": 60, "checkpoint_every": 1000})
    with TemporaryDirectory() as folder:
        SftTrainer(
            model,
            [encode(d, codec, RETAIL) for d in dialogues],
            [],
            config,
            codec.copyable,
            ROOT,
            Path(folder),
            lambda row: None,
            lambda done, total, text: None,
        ).run()
    return model, codec


def model_agent(slots: int = 32, temperature: float = 1.0) -> ModelAgent:
    """The tiny model over an engine of its own, which keeps what it opens."""
    model, codec = trained()
    engine = OpenedEngine(model, slots=slots, window=1024)
    engine.opened = []
    return ModelAgent(engine, codec, temperature, 24)
