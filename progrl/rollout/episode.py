"""One episode: an agent, a user and an environment within a horizon."""

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from progrl.agent.seats import Agent, Decision, Seat
from progrl.dialogue.messages import Message, Say, words
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import End, Trajectory, Turn, assistant_message
from progrl.dialogue.users import UserReply, UserView
from progrl.environments.contracts import Domain, Environment, StepResult
from progrl.errors import EnvironmentFault, ProgrlError, UserFault
from progrl.seeds import Seed
from progrl.users.contracts import Profile, UserSimulator

logger = logging.getLogger(__name__)
_ROUNDING = 1e-9
USER_CALLS = 30
"""Of the user's own tools, before it must speak."""


@dataclass(frozen=True, slots=True)
class EpisodeSpec:
    """What to play.

    Attributes:
        task: the task.
        seed: of the agent's sampling in this episode.
        user_seed: of the user's random choices; the same within a group.
        horizon: most agent turns.
        profile: of the user.
        tags: kept with the trajectory.
    """

    task: Task
    seed: Seed
    user_seed: int
    horizon: int
    profile: Profile
    tags: dict[str, Any] = field(default_factory=dict)


class Clock:
    """Seconds spent by component, over many episodes."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def measure(self, component: str) -> Iterator[None]:
        """Add the block's wall time to `component`."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[component] += time.perf_counter() - start


def seeded(view: UserView, seed: int) -> UserView:
    """The view, and what it changes to, with another user seed."""
    change = view.change
    if change is not None:
        change = replace(change, view=seeded(change.view, seed))
    return replace(view, seed=seed, change=change)


async def play(
    spec: EpisodeSpec,
    domain: Domain,
    agent: Agent,
    user: UserSimulator,
    clock: Clock,
    told: Callable[[Trajectory], None] | None = None,
) -> Trajectory:
    """Play one episode to its end.

    `told` is given the trajectory, which grows, before the first turn and after each.

    Never raises for a fault of environment, user or engine: the trajectory is then marked with its
    cause, and is no evidence about the agent. Each action is applied exactly once.
    """
    task = spec.task
    trajectory = Trajectory(
        task_id=task.id,
        domain=task.domain,
        family=task.family,
        level=task.level,
        expert_turns=task.expert_turns,
        query=task.query,
        horizon=spec.horizon,
        seed=spec.seed.value,
        tags={**spec.tags, "profile": spec.profile.name, "user_seed": spec.user_seed},
    )
    seat: Seat | None = None
    try:
        with clock.measure("environment"):
            environment = domain.environment()
            tools = environment.reset(task)
            low, high = environment.reward_bounds
            trajectory.reward_bounds = (low, high) if low < high else None
            view = seeded(domain.user_view(task), spec.user_seed)
        seat = agent.seat(task, domain, environment, tools, spec.seed)
        episode = _Episode(trajectory, environment, user, view, spec.profile, seat, clock, told)
        trajectory.end = await episode.run(spec.horizon)
        trajectory.outcome = environment.outcome()
    except ProgrlError as error:
        trajectory.end = End.FAULT
        trajectory.fault = f"{type(error).__name__}: {error}"
    except Exception as error:
        logger.exception("episode of task %s failed", task.id)
        trajectory.end = End.FAULT
        trajectory.fault = f"{EnvironmentFault.__name__}: {error!r}"
    finally:
        if seat is not None:
            seat.close()
    return trajectory


@dataclass(slots=True)
class _Episode:
    trajectory: Trajectory
    environment: Environment
    user: UserSimulator
    view: UserView
    profile: Profile
    seat: Seat
    clock: Clock
    told: Callable[[Trajectory], None] | None = None
    history: list[Message] = field(default_factory=list)

    async def run(self, horizon: int) -> End:
        self._tell()
        observation = Message("user", self.trajectory.query)
        for _ in range(horizon):
            self.history.append(observation)
            decision = await self.seat.act(observation)
            turn = Turn(
                action=decision.action,
                text=decision.text,
                context=decision.context,
                sampled=decision.sampled,
                logprobs=decision.logprobs,
                bias=decision.bias,
            )
            self.trajectory.turns.append(turn)
            self.history.append(assistant_message(decision.action, decision.text))
            end = await self._answer(turn, decision)
            self._check_reward(turn)
            with self.clock.measure("environment"):
                turn.domain = self.environment.outcome().domain
            self._tell()
            if end is not None:
                return end
            observation = turn.answer()
        return End.HORIZON

    def _tell(self) -> None:
        if self.told is not None:
            self.told(self.trajectory)

    async def _answer(self, turn: Turn, decision: Decision) -> End | None:
        """Apply the agent's action; fill in what came back; the end, if this was it."""
        if decision.full:
            turn.failed = True
            return End.WINDOW
        if decision.action is None:
            turn.failed, turn.source = True, "tool"
            turn.observation = f"error: {decision.error}"
            return None
        with self.clock.measure("environment"):
            result = self.environment.step(decision.action)
        self._gain(turn, result)
        turn.failed = result.failed
        if isinstance(decision.action, Say):
            if result.done or decision.action.closing:
                return End.DONE if result.done else End.CLOSED
            return await self._hear(turn)
        if result.said and not result.done:
            self.history[-1] = Message("assistant", result.said)
            return await self._hear(turn)
        turn.source, turn.observation = "tool", result.observation
        return End.DONE if result.done else None

    async def _hear(self, turn: Turn) -> End | None:
        reply = await self._reply()
        while reply.calls:
            if self._apply(turn, reply):
                return End.DONE
            reply = await self._reply()
        turn.source, turn.observation, turn.act = "user", reply.text, reply.act
        with self.clock.measure("environment"):
            result = self.environment.hear(reply)
        self._gain(turn, result)
        if reply.leaves:
            return End.LEFT
        return End.DONE if result.done else None

    def _apply(self, turn: Turn, reply: UserReply) -> bool:
        """Apply the calls of the user's own tools; whether the episode is over."""
        for call in reply.calls:
            if len(turn.user_calls) == USER_CALLS:
                raise UserFault(f"the user called {USER_CALLS} tools without a word")
            with self.clock.measure("environment"):
                result = self.environment.hear(UserReply("", reply.act, calls=(call,)))
            self._gain(turn, result)
            turn.act = reply.act
            turn.user_calls += ((call, result.observation),)
            self.history.append(Message("tool", result.observation, call))
            if result.done:
                return True
        return False

    async def _reply(self) -> UserReply:
        try:
            with self.clock.measure("user"):
                return await self.user.reply(words(self.history), self.view, self.profile)
        except ProgrlError:
            raise
        except Exception as error:
            raise UserFault(f"the simulated user failed: {error!r}") from error

    def _check_reward(self, turn: Turn) -> None:
        low, high = self.trajectory.reward_bounds or (0.0, 0.0)
        if not low - _ROUNDING <= turn.reward <= high + _ROUNDING:
            raise EnvironmentFault(
                f"a turn earned {turn.reward:g}, but the environment declares {low:g} to {high:g}: "
                "mend its `reward_bounds`"
            )

    def _gain(self, turn: Turn, result: StepResult) -> None:
        turn.reward += result.reward
        turn.gain += result.gain
        turn.milestones += result.milestones
        if result.tools is not None:
            self.seat.tools = result.tools
