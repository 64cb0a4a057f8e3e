"""A trajectory: the record of one episode, which everything later reads.

On disk a set of trajectories is `NAME.jsonl`, a record a line, and beside it `NAME.safetensors`
with the token arrays of all records laid end to end.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from progrl.dialogue.codec import Bias
from progrl.dialogue.messages import Action, Message, Say, ToolCall
from progrl.errors import DataError
from progrl.files import read_jsonl, write_bytes, write_jsonl

VERSION = 3
_READABLE = (2, VERSION)  # what 3 has besides: the end by a full window


class End(StrEnum):
    """Why an episode ended."""

    CLOSED = "closed"  # the agent closed the conversation
    LEFT = "left"  # the user left
    DONE = "done"  # the environment reached an end of its own
    HORIZON = "horizon"  # the agent's turns were used up
    WINDOW = "window"  # the agent's context was full before a message had ended
    FAULT = "fault"  # environment, user or engine failed: not evidence


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an environment judges an episode.

    Attributes:
        success: decided by the final state and the facts that had to be told.
        progress: sum of the weights of the milestones reached, in [0, 1].
        milestones: those reached, in order.
        policy_kept: no rule of the domain's policy was broken.
        domain: the component r_domain that the environment declares, as things stand, in [0, 1].
    """

    success: bool
    progress: float
    milestones: tuple[str, ...]
    policy_kept: bool
    domain: float


@dataclass(slots=True)
class Turn:
    """One agent message and what came back.

    Attributes:
        action: what the agent did; None where its text was no valid action.
        text: what the agent wrote.
        observation: what came back, "" where the episode ended with this turn.
        source: whose words `observation` is: "tool", "user", or "" if none.
        reward: the environment's own turn reward (0 where reward is made of milestones).
        gain: progress gained in the turn, in [0, 1].
        domain: r_domain as the environment declared it after the turn, in [0, 1].
        milestones: reached in this turn.
        failed: the action was malformed or its call returned an error.
        act: the user's dialogue act, "" where no user spoke.
        user_calls: what the user called before it answered, each with what it returned.
        context: ids read before the agent wrote: the opening prompt or the last observation.
        sampled: ids that the policy sampled; these alone enter a loss.
        logprobs: of `sampled`, under the policy, the bias and the temperature that sampled them.
        bias: what was added to logits where the first of `sampled` was chosen.
    """

    action: Action | None
    text: str
    observation: str = ""
    source: str = ""
    reward: float = 0.0
    gain: float = 0.0
    domain: float = 0.0
    milestones: tuple[str, ...] = ()
    failed: bool = False
    act: str = ""
    user_calls: tuple[tuple[ToolCall, str], ...] = ()
    context: Sequence[int] = ()
    sampled: Sequence[int] = ()
    logprobs: Sequence[float] = ()
    bias: Bias = ()

    def answer(self) -> Message:
        """What came back, as a message."""
        return Message("tool" if self.source == "tool" else "user", self.observation)


@dataclass(slots=True)
class Trajectory:
    """The record of one episode.

    `tags` holds what a caller wants to find it by (step, trial, agent, profile), JSON values only.
    `reward_bounds` are those that an environment with turn rewards of its own declares for them.
    """

    task_id: str
    domain: str
    family: str
    level: int
    expert_turns: int
    query: str
    horizon: int
    seed: int
    turns: list[Turn] = field(default_factory=list)
    end: End = End.HORIZON
    fault: str = ""
    outcome: Outcome | None = None
    tags: dict[str, Any] = field(default_factory=dict)
    reward_bounds: tuple[float, float] | None = None

    @property
    def valid(self) -> bool:
        """The episode is evidence about the agent."""
        return self.end is not End.FAULT and self.outcome is not None

    @property
    def success(self) -> bool:
        """Success as the environment decided; an episode cut by horizon or window has none."""
        cut = self.end in (End.HORIZON, End.WINDOW)
        return self.outcome is not None and self.outcome.success and not cut

    def history(self) -> list[Message]:
        """The conversation as messages, the opening query first."""
        messages = [Message("user", self.query)]
        for turn in self.turns:
            messages.append(assistant_message(turn.action, turn.text))
            if turn.source:
                messages.append(turn.answer())
        return messages

    def tokens(self) -> tuple[list[int], list[bool]]:
        """All ids in order, and for each whether the policy sampled it."""
        ids: list[int] = []
        mask: list[bool] = []
        for turn in self.turns:
            ids += [*turn.context, *turn.sampled]
            mask += [False] * len(turn.context) + [True] * len(turn.sampled)
        return ids, mask


def assistant_message(action: Action | None, text: str) -> Message:
    """The agent's side of a turn as a message."""
    match action:
        case ToolCall():
            return Message("assistant", "", call=action)
        case Say():
            return Message("assistant", action.text, closing=action.closing)
        case None:
            return Message("assistant", text, malformed=True)


def _action_json(action: Action | None) -> dict[str, Any] | None:
    match action:
        case ToolCall():
            return {"call": action.name, "arguments": dict(action.arguments)}
        case Say():
            return {"say": action.text, "closing": action.closing}
        case None:
            return None


def _user_call_json(call: ToolCall, returned: str) -> list[Any]:
    return [call.name, dict(call.arguments), returned]


def _action(value: dict[str, Any] | None) -> Action | None:
    if value is None:
        return None
    if "call" in value:
        return ToolCall(value["call"], value["arguments"])
    return Say(value["say"], value["closing"])


def record(trajectory: Trajectory) -> dict[str, Any]:
    """The trajectory as JSON values; of its token arrays the lengths alone."""
    turns = [
        {
            "action": _action_json(t.action),
            "text": t.text,
            "observation": t.observation,
            "source": t.source,
            "reward": t.reward,
            "gain": t.gain,
            "domain": t.domain,
            "milestones": list(t.milestones),
            "failed": t.failed,
            "act": t.act,
            "tokens": [len(t.context), len(t.sampled)],
            **({"bias": [list(pair) for pair in t.bias]} if t.bias else {}),
            **({"user_calls": [_user_call_json(*c) for c in t.user_calls]} if t.user_calls else {}),
        }
        for t in trajectory.turns
    ]
    outcome = asdict(trajectory.outcome) if trajectory.outcome else None
    plain = {
        name: getattr(trajectory, name)
        for name in Trajectory.__dataclass_fields__
        if name not in {"turns", "outcome", "reward_bounds"}
    }
    if trajectory.reward_bounds is not None:
        plain["reward_bounds"] = list(trajectory.reward_bounds)
    return {"version": VERSION, **plain, "turns": turns, "outcome": outcome}


def _packed(trajectories: Iterable[Trajectory]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Records, and the arrays of all their tokens end to end."""
    records: list[dict[str, Any]] = []
    ids: list[int] = []
    logprobs: list[float] = []
    for trajectory in trajectories:
        records.append(record(trajectory))
        for turn in trajectory.turns:
            ids += [*turn.context, *turn.sampled]
            logprobs += turn.logprobs if len(turn.logprobs) else [0.0] * len(turn.sampled)
    arrays = {
        "ids": np.asarray(ids, dtype=np.int32),
        "logprobs": np.asarray(logprobs, dtype=np.float32),
    }
    return records, arrays


def write_trajectories(path: Path, trajectories: Iterable[Trajectory]) -> None:
    """Write `path` (.jsonl) and the token arrays beside it (.safetensors)."""
    from safetensors.numpy import save

    records, arrays = _packed(trajectories)
    write_bytes(path.with_suffix(".safetensors"), save(arrays))
    write_jsonl(path, records)


def pack(trajectories: Iterable[Trajectory]) -> bytes:
    """Trajectories as one message between processes."""
    from safetensors.numpy import save

    records, arrays = _packed(trajectories)
    return save(arrays, {"records": json.dumps(records)})


def unpack(message: bytes) -> list[Trajectory]:
    """The trajectories of a message that `pack` has made."""
    from safetensors.numpy import load

    arrays = load(message)
    length = int.from_bytes(message[:8], "little")
    records = json.loads(json.loads(message[8 : 8 + length])["__metadata__"]["records"])
    trajectories, at, at_sampled = [], 0, 0
    for value in records:
        trajectory, at, at_sampled = _trajectory(value, arrays, at, at_sampled)
        trajectories.append(trajectory)
    return trajectories


def read_trajectories(path: Path) -> list[Trajectory]:
    """The trajectories of a file.

    Raises:
        DataError: a file is missing, a record is broken or of another version (file and line
            named), or the token arrays do not fit the records.
    """
    arrays = _arrays(path.with_suffix(".safetensors"))
    trajectories, at, at_sampled = [], 0, 0
    for number, value in read_jsonl(path):
        if not isinstance(value, dict) or value.get("version") not in _READABLE:
            raise DataError(
                f"{path}, line {number}: not a trajectory of version {VERSION}. It was written by "
                "another progrl: write it again with this one."
            )
        try:
            trajectory, at, at_sampled = _trajectory(value, arrays, at, at_sampled)
        except (TypeError, KeyError, ValueError) as error:
            raise DataError(f"{path}, line {number}: not a trajectory ({error!r}).") from None
        trajectories.append(trajectory)
    if at != len(arrays["ids"]) or at_sampled != len(arrays["logprobs"]):
        raise DataError(
            f"{path}: its token arrays (.safetensors) belong to another file or are cut short. "
            "Write both again."
        )
    return trajectories


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(path)
    except FileNotFoundError:
        raise DataError(
            f"{path}: no such file. It stands beside each file of trajectories: copy it along with "
            f"{path.with_suffix('.jsonl').name}, if that is one."
        ) from None
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: damaged ({error}). Write the trajectories again.") from None


def _trajectory(
    value: dict[str, Any], arrays: dict[str, NDArray[Any]], at: int, at_sampled: int
) -> tuple[Trajectory, int, int]:
    turns = []
    for t in value["turns"]:
        context, sampled = t.pop("tokens")
        middle, end = at + context, at + context + sampled
        bias = tuple((int(token), float(value)) for token, value in t.pop("bias", ()))
        user_calls = tuple(
            (ToolCall(name, arguments), returned)
            for name, arguments, returned in t.pop("user_calls", ())
        )
        turns.append(
            Turn(
                **{**t, "action": _action(t["action"]), "milestones": tuple(t["milestones"])},
                context=arrays["ids"][at:middle].tolist(),
                sampled=arrays["ids"][middle:end].tolist(),
                logprobs=arrays["logprobs"][at_sampled : at_sampled + sampled].tolist(),
                bias=bias,
                user_calls=user_calls,
            )
        )
        at, at_sampled = end, at_sampled + sampled
    outcome = value["outcome"]
    if outcome is not None:
        outcome = Outcome(**{**outcome, "milestones": tuple(outcome["milestones"])})
    plain = {k: v for k, v in value.items() if k not in {"version", "turns", "outcome", "end"}}
    if "reward_bounds" in plain:
        low, high = plain["reward_bounds"]
        plain["reward_bounds"] = (low, high)
    end_cause = End(value["end"])
    return Trajectory(**plain, turns=turns, outcome=outcome, end=end_cause), at, at_sampled
