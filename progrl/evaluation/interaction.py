"""How an agent treats its user: pure functions of one trajectory.

Words are read by the rules of `dialogue.acts`, as users and environments read them. A share is a
`Ratio` of counts, so that it can be pooled over episodes; where nothing was possible it is 0 of 0,
which is undefined and never 0.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from progrl.dialogue.acts import asks, asks_confirmation, normal, offers, promises, reports
from progrl.dialogue.messages import Say, ToolCall
from progrl.dialogue.trajectories import End, Trajectory, Turn

_WORD = re.compile(r"[\w@-]+(?:\.[\w@-]+)*")
_TRANSIENT = re.compile(r"\b(try again|retry|busy|temporar\w*|time[d ]*out|unavailable)\b")
_BETWEEN = frozenset(["a", "are", "at", "be", "by", "for", "has", "have", "is", "now", "of"])
_BETWEEN |= {"the", "to", "was", "were"}

GOAL, NO_REPETITION, NO_IGNORING, IN_PATIENCE = 0.5, 0.2, 0.15, 0.15
"""What satisfaction is made of where the goal was met."""
WITHOUT_GOAL, LEFT = 0.3, 0.2
"""The most that satisfaction can be without the goal, and where the user left."""


class Ratio(NamedTuple):
    """`part` of `of` cases."""

    part: int
    of: int

    @property
    def value(self) -> float | None:
        """part / of, in [0, 1]; None where there is no case."""
        return self.part / self.of if self.of else None


def pooled(ratios: Iterable[Ratio]) -> Ratio:
    """All cases of several ratios together."""
    parts = list(ratios)
    return Ratio(sum(r.part for r in parts), sum(r.of for r in parts))


@dataclass(frozen=True, slots=True)
class Judgement:
    """What could have gone wrong in a turn, and what did.

    Attributes:
        question: the agent asked for a fact; `repeated`: for one that the user had said.
        statement: it spoke after a tool had answered; `contradicts`: against the last answer.
        retry: it called a tool when calls had failed and nothing had changed since; `unchanged`:
            with one of these very calls.
    """

    question: bool = False
    repeated: bool = False
    statement: bool = False
    contradicts: bool = False
    retry: bool = False
    unchanged: bool = False

    @property
    def possible(self) -> bool:
        """A violation was possible."""
        return self.question or self.statement or self.retry

    @property
    def violated(self) -> bool:
        """There was one."""
        return self.repeated or self.contradicts or self.unchanged


def judge_turns(trajectory: Trajectory) -> list[Judgement]:
    """One judgement a turn.

    * A question is repeated where the user had to say a thing again (its act is `repeat`), or where
      the same words had been answered and the goal has not changed since.
    * A statement contradicts the last tool result where it reports success after an error, or puts
      beside a label of that result a value that nothing in the conversation has shown.
    * An error that asks to try again forbids no repetition. After a call that went well, or a
      user's reply, the same call may be right.
    """
    reader = _Reader(trajectory.query)
    return [reader.read(turn) for turn in trajectory.turns]


class _Reader:
    """What the conversation has shown so far."""

    def __init__(self, query: str) -> None:
        self.values = _values(query)
        self.answered: set[str] = set()
        self.failed: list[ToolCall] = []
        self.result: Turn | None = None

    def read(self, turn: Turn) -> Judgement:
        match turn.action:
            case Say(text):
                judgement = self._words(text, turn)
                self.failed = []
            case ToolCall():
                unchanged = turn.action in self.failed
                judgement = Judgement(retry=bool(self.failed), unchanged=unchanged)
                self._called(turn.action, turn)
            case None:
                judgement = Judgement()
        self.values |= _values(turn.observation)
        return judgement

    def _words(self, text: str, turn: Turn) -> Judgement:
        question = is_question(text)
        again = question and (turn.act == "repeat" or normal(text) in self.answered)
        if turn.act == "change_goal":
            self.answered = set()
        elif question and turn.act in ("inform", "repeat"):
            self.answered.add(normal(text))
        contradicts = self.result is not None and self._contradicts(text, self.result)
        return Judgement(
            question=question,
            repeated=again,
            statement=self.result is not None,
            contradicts=contradicts,
        )

    def _contradicts(self, text: str, result: Turn) -> bool:
        if result.failed:
            asking = asks(text) or asks_confirmation(text) or promises(text)
            return reports(text) and not asking
        labels = {label for label, _ in _labelled(result.observation)}
        return any(
            label in labels and value not in self.values for label, value in _labelled(text, True)
        )

    def _called(self, call: ToolCall, turn: Turn) -> None:
        self.result = turn
        if not turn.failed:
            self.failed = []
        elif not transient(turn.observation):
            self.failed.append(call)


def is_question(text: str) -> bool:
    """The agent asks for a fact: neither to agree to something nor what else there is to do."""
    return asks(text) and not asks_confirmation(text) and not offers(text)


def transient(error: str) -> bool:
    """The error says that the same call may succeed later."""
    return bool(_TRANSIENT.search(normal(error)))


def _is_value(word: str) -> bool:
    return any(c.isdigit() for c in word)


def _values(text: str) -> set[str]:
    return {word for word in _WORD.findall(normal(text)) if _is_value(word)}


def _labelled(text: str, spoken: bool = False) -> list[tuple[str, str]]:
    """Words with the values beside them: after them, and in speech also before (`525 points`)."""
    words = _WORD.findall(normal(text))
    pairs = []
    for at, word in enumerate(words):
        if not _is_value(word):
            continue
        before = words[:at]
        while spoken and before and before[-1] in _BETWEEN:
            before.pop()
        labels = before[-1:] + (words[at + 1 : at + 2] if spoken else [])
        pairs += [(label, word) for label in labels if not _is_value(label)]
    return pairs


def coherence(trajectory: Trajectory) -> Ratio:
    """Context coherence: turns without a violation, of those in which one was possible.

    share = |possible and not violated| / |possible|, in [0, 1]; see `judge_turns`.
    """
    judged = [j for j in judge_turns(trajectory) if j.possible]
    return Ratio(sum(not j.violated for j in judged), len(judged))


def changed_calls(trajectory: Trajectory) -> Ratio:
    """Failed calls whose next call is another one, of all failed calls; in [0, 1].

    A message that was no valid action counts as a call, and is changed where its text is. A failed
    call after which none follows was not changed. Calls whose error asks to try again are left
    out: there the same call is right.
    """
    tries = [turn for turn in trajectory.turns if not isinstance(turn.action, Say)]
    changed = [
        following is not None and (turn.action or turn.text) != (following.action or following.text)
        for turn, following in zip(tries, [*tries[1:], None], strict=False)
        if turn.failed and not transient(turn.observation)
    ]
    return Ratio(sum(changed), len(changed))


def ignored_corrections(trajectory: Trajectory) -> Ratio:
    """Corrections (the user's act `correct`) that the agent ignored, of all; in [0, 1].

    Ignored: the agent's next words are the same as those that were corrected, are corrected again,
    or never come.
    """
    spoken = [turn for turn in trajectory.turns if isinstance(turn.action, Say)]
    ignored = [
        following is None
        or following.act == "correct"
        or normal(following.text) == normal(turn.text)
        for turn, following in zip(spoken, [*spoken[1:], None], strict=False)
        if turn.act == "correct"
    ]
    return Ratio(sum(ignored), len(ignored))


def satisfaction(trajectory: Trajectory, patience: int | None = None) -> float | None:
    """How content the user can be, by rule, in [0, 1]; None for an episode lost to a fault.

    Terms: 0.2 no question repeated (applies where one was asked), 0.15 no correction ignored (where
    there was one), 0.15 no more turns than the patience (where it is known). With k the sum of
    those kept and a of those that apply:

    * goal met: (0.5 + k) / (0.5 + a)
    * else: 0.3 * progress * k / a, with k / a = 1 where none applies
    * at most 0.2 where the user left without its goal, or believing so

    Args:
        patience: of the user's profile, in turns.
    """
    if not trajectory.valid or trajectory.outcome is None:
        return None
    judged = judge_turns(trajectory)
    corrections = ignored_corrections(trajectory)
    terms: list[tuple[float, bool]] = []
    if any(j.question for j in judged):
        terms.append((NO_REPETITION, not any(j.repeated for j in judged)))
    if corrections.of:
        terms.append((NO_IGNORING, not corrections.part))
    if patience is not None:
        terms.append((IN_PATIENCE, len(trajectory.turns) <= patience))
    kept = sum(weight for weight, holds in terms if holds)
    apply = sum(weight for weight, _ in terms)
    if trajectory.success:
        value = (GOAL + kept) / (GOAL + apply)
    else:
        value = WITHOUT_GOAL * trajectory.outcome.progress * (kept / apply if apply else 1.0)
    unhappy = not trajectory.success or trajectory.turns[-1].act == "leave"
    return min(value, LEFT) if trajectory.end is End.LEFT and unhappy else value
