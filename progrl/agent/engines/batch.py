"""The slots' bookkeeping: what each is to read, what each has sampled, and one step of all.

A step does no Python work per token and conversation: rows are numpy records, and only what starts
or ends in a step is touched singly.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from progrl.agent.engines.contracts import Sample, SamplingParams
from progrl.agent.engines.decoder import Decoder, Ints
from progrl.agent.engines.sampling import choose, uniforms
from progrl.dialogue.codec import Bias

_READ = 2048  # most tokens read in one step
_ROW = np.dtype(
    [
        ("decoding", np.bool_),
        ("windowed", np.bool_),
        ("last", np.int64),
        ("count", np.int64),
        ("limit", np.int64),
        ("temperature", np.float64),
        ("seed", np.uint64),
        ("stops", np.int64),
        ("used", np.int64),
    ]
)


@dataclass(slots=True)
class Statistics:
    """Work done since the engine was made: tokens read, tokens sampled, steps."""

    read: int = 0
    sampled: int = 0
    steps: int = 0


class Batch:
    """Steps the conversations of all slots together.

    With `share`, slots that open with the same ids in the same step have them read once.
    """

    def __init__(self, decoder: Decoder, slots: int, share: bool) -> None:
        self.decoder = decoder
        self.statistics = Statistics()
        self._share = share
        self._cache = decoder.new_cache(slots)
        self._rows = np.zeros(slots, dtype=_ROW)
        self._ids = np.zeros((slots, 64), dtype=np.int64)
        self._logprobs = np.zeros((slots, 64), dtype=np.float32)
        self._unread: dict[int, Sequence[int]] = {}
        self._bias: dict[int, Bias] = {}  # of slots whose first token is still to be chosen
        self._stop_sets: dict[frozenset[int], int] = {}
        self._stops = np.zeros((0, decoder.vocabulary), dtype=np.bool_)

    @property
    def slots(self) -> int:
        """How many conversations can be held."""
        return len(self._rows)

    def used(self, slot: int) -> int:
        """The step in which the slot's last sample began."""
        return int(self._rows["used"][slot])

    def start(self, slot: int, ids: Sequence[int], params: SamplingParams, room: int) -> None:
        """Sample a message at the end of `ids`, of which the slot may hold a beginning already.

        `room` is the number of tokens that the conversation's window has left, at least 1.
        """
        limit = min(params.max_tokens, room)
        if limit > self._ids.shape[1]:
            more = ((0, 0), (0, limit - self._ids.shape[1]))
            self._ids, self._logprobs = np.pad(self._ids, more), np.pad(self._logprobs, more)
        self._rows[slot] = (
            False,
            room < params.max_tokens,
            0,
            0,
            limit,
            params.temperature,
            params.seed % 2**64,
            self._stop_row(params.stop_ids),
            self.statistics.steps,
        )
        self._unread[slot] = ids[int(self._cache.lengths[slot]) :]
        if params.bias:
            self._bias[slot] = params.bias

    def stop(self, slot: int, known: int) -> None:
        """End a slot's sampling; of its conversation the first `known` ids stand."""
        self._unread.pop(slot, None)
        self._bias.pop(slot, None)
        self._rows["decoding"][slot] = False
        self._cache.lengths[slot] = min(int(self._cache.lengths[slot]), known)

    def move(self, source: int, target: int) -> None:
        """Let `target` go on with what `source` holds; `source` becomes free."""
        self._cache.move(source, target)
        for array in (self._rows, self._ids, self._logprobs):
            array[target] = array[source]
        if source in self._unread:
            self._unread[target] = self._unread.pop(source)
        if source in self._bias:
            self._bias[target] = self._bias.pop(source)
        self.free(source)

    def free(self, slot: int) -> None:
        """Forget what a slot holds."""
        self._unread.pop(slot, None)
        self._bias.pop(slot, None)
        self._rows[slot] = 0
        self._cache.lengths[slot] = 0

    def step(self) -> list[tuple[int, Sample]]:
        """Read what is new and sample a token for each slot that is read up; who is finished."""
        decoding = np.flatnonzero(self._rows["decoding"])
        slots, hidden = self._read()
        if len(decoding):
            last = self._rows["last"][decoding]
            slots.append(decoding)
            hidden.append(self.decoder.decode(self._cache, decoding, last))
        self.statistics.steps += 1
        if not slots:
            return []
        return self._sample(np.concatenate(slots), self.decoder.logits(torch.cat(hidden)))

    def _stop_row(self, stop_ids: frozenset[int]) -> int:
        if stop_ids not in self._stop_sets:
            row = np.zeros((1, self.decoder.vocabulary), dtype=np.bool_)
            row[0, [i for i in stop_ids if i < self.decoder.vocabulary]] = True
            self._stop_sets[stop_ids] = len(self._stops)
            self._stops = np.concatenate([self._stops, row])
        return self._stop_sets[stop_ids]

    def _read(self) -> tuple[list[Ints], list[Tensor]]:
        """Read up to _READ tokens, first come first served; slots read up and their last states."""
        budget = _READ
        parts: list[tuple[int, Sequence[int]]] = []
        leaders: dict[tuple[int, ...], int] = {}
        followers: list[tuple[int, int]] = []
        for slot, ids in self._unread.items():
            key = tuple(ids) if self._share and self._cache.lengths[slot] == 0 else None
            if key in leaders:
                followers.append((slot, leaders[key]))
            elif budget:
                parts.append((slot, ids[:budget]))
                budget -= len(parts[-1][1])
                if key is not None and len(parts[-1][1]) == len(ids):
                    leaders[key] = slot
        slots: list[Ints] = []
        hidden: list[Tensor] = []
        for group in _alike(parts):
            read_up, states = self._read_group(group)
            slots.append(read_up)
            hidden.append(states)
        if followers:
            at = {int(slot): i for i, slot in enumerate(np.concatenate(slots))}
            states = torch.cat(hidden)
            for slot, leader in followers:
                self._cache.move(leader, slot)
                del self._unread[slot]
            slots.append(np.asarray([slot for slot, _ in followers]))
            hidden.append(states[[at[leader] for _, leader in followers]])
        return slots, hidden

    def _read_group(self, group: Sequence[tuple[int, Sequence[int]]]) -> tuple[Ints, Tensor]:
        slots = np.asarray([slot for slot, _ in group])
        counts = np.asarray([len(ids) for _, ids in group])
        ids = np.concatenate([np.asarray(ids, dtype=np.int64) for _, ids in group])
        states = self.decoder.read(self._cache, slots, counts, ids)
        self.statistics.read += len(ids)
        whole = np.zeros(len(group), dtype=np.bool_)
        for i, (slot, part) in enumerate(group):
            rest = self._unread[slot][len(part) :]
            if rest:
                self._unread[slot] = rest
            else:
                del self._unread[slot]
                whole[i] = True
        return slots[whole], states[torch.from_numpy(whole)]

    def _sample(self, slots: Ints, logits: Tensor) -> list[tuple[int, Sample]]:
        rows = self._rows
        count = rows["count"][slots]
        numbers = uniforms(rows["seed"][slots], count)
        if self._bias:
            logits = self._biased(slots, logits.float())
        chosen, logprobs = choose(logits, rows["temperature"][slots], numbers)
        ids = chosen.numpy()
        self._ids[slots, count] = ids
        self._logprobs[slots, count] = logprobs.numpy()
        stopped = self._stops[rows["stops"][slots], ids]
        done = stopped | (count + 1 >= rows["limit"][slots])
        rows["last"][slots] = ids
        rows["count"][slots] = count + 1
        rows["decoding"][slots] = ~done
        self.statistics.sampled += len(slots)
        return [
            (slot, self._finished(slot, bool(stop)))
            for slot, stop in zip(slots[done].tolist(), stopped[done], strict=True)
        ]

    def _biased(self, slots: Ints, logits: Tensor) -> Tensor:
        for row, slot in enumerate(slots.tolist()):
            for token, value in self._bias.pop(slot, ()):
                logits[row, token] += value
        return logits

    def _finished(self, slot: int, stopped: bool) -> Sample:
        count = int(self._rows["count"][slot])
        ids = self._ids[slot, :count].tolist()
        logprobs = self._logprobs[slot, :count].tolist()
        if stopped:
            return Sample(ids, logprobs, "stop")
        return Sample(ids, logprobs, "window" if self._rows["windowed"][slot] else "length")


def _alike(
    parts: list[tuple[int, Sequence[int]]],
) -> list[list[tuple[int, Sequence[int]]]]:
    """Groups of parts none of which is more than about twice as long as another of its group."""
    groups: list[list[tuple[int, Sequence[int]]]] = []
    for part in sorted(parts, key=lambda p: len(p[1])):
        if groups and len(part[1]) <= 2 * len(groups[-1][0][1]) + 16:
            groups[-1].append(part)
        else:
            groups.append([part])
    return groups
