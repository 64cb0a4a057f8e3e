"""The seats' bookkeeping: what each is to read, what each has sampled, and one step of all.

A conversation has a seat, and its keys and values lie in a slot. Conversations whose ids are the
same share a slot until they part: what a group of episodes has in common is computed once. A step
does no Python work per token and conversation: seats are numpy records, and only what starts, parts
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
_NOWHERE = -1  # the slot of a seat whose conversation was not read yet
_SEAT = np.dtype(
    [
        ("slot", np.int64),
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
    """Work done since the engine was made.

    Attributes:
        read: tokens read, those that conversations share once.
        sampled: tokens sampled.
        decoded: tokens computed to sample those; fewer where conversations share a slot.
        steps: of the batch.
    """

    read: int = 0
    sampled: int = 0
    decoded: int = 0
    steps: int = 0


class Batch:
    """Steps the conversations of all seats together.

    With `share`, seats whose conversations open alike share a slot until they part.
    """

    def __init__(self, decoder: Decoder, seats: int, share: bool) -> None:
        self.decoder = decoder
        self.statistics = Statistics()
        self._share = share
        self._cache = decoder.new_cache(seats)
        self._seats = np.zeros(seats, dtype=_SEAT)
        self._seats["slot"] = _NOWHERE
        self._members: list[list[int]] = []  # by slot, the seats in it; these fill the first slots
        self._ids = np.zeros((seats, 64), dtype=np.int64)
        self._logprobs = np.zeros((seats, 64), dtype=np.float32)
        self._starting: dict[int, Sequence[int]] = {}  # by seat, all ids of its conversation
        self._unread: dict[int, Sequence[int]] = {}  # by slot
        self._bias: dict[int, Bias] = {}  # of seats whose first token is still to be chosen
        self._stop_sets: dict[frozenset[int], int] = {}
        self._stops = np.zeros((0, decoder.vocabulary), dtype=np.bool_)

    @property
    def seats(self) -> int:
        """How many conversations can be held."""
        return len(self._seats)

    def used(self, seat: int) -> int:
        """The step in which the seat's last sample began."""
        return int(self._seats["used"][seat])

    def start(self, seat: int, ids: Sequence[int], params: SamplingParams, room: int) -> None:
        """Sample a message at the end of `ids`, of which a beginning may have been read already.

        `room` is the number of tokens that the conversation's window has left, at least 1.
        """
        limit = min(params.max_tokens, room)
        if limit > self._ids.shape[1]:
            more = ((0, 0), (0, limit - self._ids.shape[1]))
            self._ids, self._logprobs = np.pad(self._ids, more), np.pad(self._logprobs, more)
        self._seats[seat] = (
            self._seats["slot"][seat],
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
        self._starting[seat] = ids
        if params.bias:
            self._bias[seat] = params.bias

    def stop(self, seat: int, known: int) -> None:
        """End a seat's sampling; of its conversation the first `known` ids stand."""
        slot = int(self._seats["slot"][seat])
        if slot == _NOWHERE or len(self._members[slot]) > 1:
            self.free(seat)
            return
        self._forget(seat)
        self._unread.pop(slot, None)
        # The last id is read again: from its state the next sample begins.
        self._cache.lengths[slot] = min(int(self._cache.lengths[slot]), known - 1)

    def free(self, seat: int) -> None:
        """Forget what a seat holds."""
        slot = int(self._seats["slot"][seat])
        self._forget(seat)
        self._seats["slot"][seat] = _NOWHERE
        if slot == _NOWHERE:
            return
        self._members[slot].remove(seat)
        if not self._members[slot]:
            self._vacate(slot)

    def step(self) -> list[tuple[int, Sample]]:
        """Read what is new and sample a token for each seat that is read up; who is finished."""
        decoding = np.flatnonzero(self._seats["decoding"])
        self._settle()
        read_up, hidden = self._read()
        slots: Ints = np.asarray(read_up, dtype=np.int64)
        if len(decoding):
            active, first = np.unique(self._seats["slot"][decoding], return_index=True)
            slots = np.concatenate([slots, active])
            last = self._seats["last"][decoding[first]]
            hidden.append(self.decoder.decode(self._cache, active, last))
            self.statistics.decoded += len(active)
        self.statistics.steps += 1
        if not len(slots):
            return []
        return self._sample(slots, self.decoder.logits(torch.cat(hidden)))

    def _stop_row(self, stop_ids: frozenset[int]) -> int:
        if stop_ids not in self._stop_sets:
            row = np.zeros((1, self.decoder.vocabulary), dtype=np.bool_)
            row[0, [i for i in stop_ids if i < self.decoder.vocabulary]] = True
            self._stop_sets[stop_ids] = len(self._stops)
            self._stops = np.concatenate([self._stops, row])
        return self._stop_sets[stop_ids]

    def _forget(self, seat: int) -> None:
        self._starting.pop(seat, None)
        self._bias.pop(seat, None)
        self._seats["decoding"][seat] = False

    def _settle(self) -> None:
        """Find a slot for who starts: those of one slot that go on alike stay together."""
        alike: dict[tuple[int, object], list[int]] = {}
        for seat, ids in self._starting.items():
            slot = int(self._seats["slot"][seat])
            unread = ids if slot == _NOWHERE else ids[int(self._cache.lengths[slot]) :]
            alike.setdefault((slot, tuple(unread) if self._share else seat), []).append(seat)
        for (slot, _), seats in alike.items():
            ids = self._starting[seats[0]]
            if slot == _NOWHERE or len(self._members[slot]) > len(seats):
                slot = self._part(slot, seats)
            self._unread[slot] = ids[int(self._cache.lengths[slot]) :]
        self._starting = {}

    def _part(self, slot: int, seats: list[int]) -> int:
        """Let `seats` leave the slot they share, if any, for one of their own; its number."""
        own = len(self._members)
        self._members.append(seats)
        self._seats["slot"][seats] = own
        self._cache.lengths[own] = 0
        if slot != _NOWHERE:
            self._members[slot] = [seat for seat in self._members[slot] if seat not in seats]
            self._cache.copy(slot, own)
        return own

    def _vacate(self, slot: int) -> None:
        """Give up a slot in which nobody sits; the last slot's seats move there."""
        last = len(self._members) - 1
        self._unread.pop(slot, None)
        movers = self._members.pop()
        if slot != last:
            self._members[slot] = movers
            self._seats["slot"][movers] = slot
            self._cache.copy(last, slot)
            if last in self._unread:
                self._unread[slot] = self._unread.pop(last)

    def _read(self) -> tuple[list[int], list[Tensor]]:
        """Read up to _READ tokens, first come first served; slots read up and their last states."""
        budget = _READ
        parts: list[tuple[int, Sequence[int]]] = []
        for slot, ids in self._unread.items():
            if not budget:
                break
            parts.append((slot, ids[:budget]))
            budget -= len(parts[-1][1])
        slots: list[int] = []
        hidden: list[Tensor] = []
        for group in _alike(parts):
            read_up, states = self._read_group(group)
            slots += read_up
            hidden.append(states)
        return slots, hidden

    def _read_group(self, group: Sequence[tuple[int, Sequence[int]]]) -> tuple[list[int], Tensor]:
        slots = np.asarray([slot for slot, _ in group])
        counts = np.asarray([len(ids) for _, ids in group])
        ids = np.concatenate([np.asarray(ids, dtype=np.int64) for _, ids in group])
        states = self.decoder.read(self._cache, slots, counts, ids)
        self.statistics.read += len(ids)
        whole = []
        for i, (slot, part) in enumerate(group):
            rest = self._unread[slot][len(part) :]
            if rest:
                self._unread[slot] = rest
            else:
                del self._unread[slot]
                whole.append(i)
        return [group[i][0] for i in whole], states[whole]

    def _sample(self, slots: Ints, logits: Tensor) -> list[tuple[int, Sample]]:
        """Choose a token for each seat in `slots`, of which `logits` [slots, vocabulary] are."""
        members = [self._members[slot] for slot in slots.tolist()]
        seats: Ints = np.concatenate(members)
        rows = self._seats
        if len(seats) > len(slots):
            shared = np.repeat(np.arange(len(slots)), [len(m) for m in members])
            logits = logits[torch.from_numpy(shared)]
        count = rows["count"][seats]
        numbers = uniforms(rows["seed"][seats], count)
        if self._bias:
            logits = self._biased(seats, logits.float())
        chosen, logprobs = choose(logits, rows["temperature"][seats], numbers)
        ids = chosen.numpy()
        self._ids[seats, count] = ids
        self._logprobs[seats, count] = logprobs.numpy()
        stopped = self._stops[rows["stops"][seats], ids]
        done = stopped | (count + 1 >= rows["limit"][seats])
        rows["last"][seats] = ids
        rows["count"][seats] = count + 1
        rows["decoding"][seats] = ~done
        self.statistics.sampled += len(seats)
        if len(seats) > len(slots):
            self._split(slots, members)
        return [
            (seat, self._finished(seat, bool(stop)))
            for seat, stop in zip(seats[done].tolist(), stopped[done], strict=True)
        ]

    def _split(self, slots: Ints, members: Sequence[list[int]]) -> None:
        """Let those who chose otherwise than the first of their slot have slots of their own."""
        rows = self._seats
        for slot, seats in zip(slots.tolist(), members, strict=True):
            if len(seats) == 1:
                continue
            paths: dict[tuple[int, bool], list[int]] = {}
            for seat in seats:
                path = int(rows["last"][seat]), bool(rows["decoding"][seat])
                paths.setdefault(path, []).append(seat)
            for leaving in list(paths.values())[1:]:
                self._part(slot, leaving)

    def _biased(self, seats: Ints, logits: Tensor) -> Tensor:
        for row, seat in enumerate(seats.tolist()):
            for token, value in self._bias.pop(seat, ()):
                logits[row, token] += value
        return logits

    def _finished(self, seat: int, stopped: bool) -> Sample:
        count = int(self._seats["count"][seat])
        ids = self._ids[seat, :count].tolist()
        logprobs = self._logprobs[seat, :count].tolist()
        if stopped:
            return Sample(ids, logprobs, "stop")
        return Sample(ids, logprobs, "window" if self._seats["windowed"][seat] else "length")


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
