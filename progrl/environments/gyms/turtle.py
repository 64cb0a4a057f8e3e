"""The gym `turtle`: solve a riddle by questions answered yes, no or maybe, then explain it."""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from progrl.dialogue.acts import mentions, normal
from progrl.dialogue.messages import Action, Message, Say, ToolCall, ToolSpec
from progrl.dialogue.tasks import Task
from progrl.dialogue.users import Fact, UserReply, UserView
from progrl.environments.choices import Choices, Use
from progrl.environments.contracts import State, StepResult
from progrl.environments.gyms.base import Draft, Gym, GymEnvironment
from progrl.environments.gyms.recognise import (
    Judge,
    JudgedOptions,
    Subject,
    affirmed,
    judge,
    sentences,
    stems,
)
from progrl.environments.gyms.riddles import ANSWERS, PARTS, SCENES, SUBJECTS, answers_in
from progrl.environments.service.tools import spec

LOOK_UP, EXPLAIN = "look_up", "explain"
YES, NO, MAYBE = "yes", "no", "maybe"
SOLVED, PUBLISHED_SOLVED = 0.9, 1.0
"""The score with which the riddle is solved."""
SHAPES: Mapping[int, tuple[int, int]] = {1: (2, 3), 2: (2, 6), 3: (3, 5), 4: (4, 5), 5: (4, 8)}
"""How many parts a riddle has, and how many answers are possible in each, by level."""
SCORES: Mapping[int, tuple[float, ...]] = {
    2: (0.6, 0.4),
    3: (0.5, 0.3, 0.2),
    4: (0.4, 0.3, 0.2, 0.1),
}
"""What the parts count, by how many there are."""
TELLING = 0.6
"""Least share of an imported criterion's telling words that an explanation of it has."""

_NEARLY = 1e-9
_VERDICT = re.compile(r"\b(yes|yeah|yep|no|nope|maybe|partly)\b")
_NEGATED = re.compile(r"\b(not|never)\b|n't\b")
_WORDINGS = {
    YES: ("yes", "yes , it is so", "yeah", "yes , right", "yep"),
    NO: ("no", "no , not at all", "nope", "no , sorry", "no , it is not so"),
    MAYBE: ("maybe", "maybe , in a way", "partly", "maybe a part of it", "partly so"),
}
_QUERIES = (
    "{scene} . explain it : {parts}",
    "here is a riddle : {scene} . find out {parts}",
    "{scene} . what is behind it ? tell me {parts}",
    "can you solve this one ? {scene} . i want to hear {parts}",
    "listen : {scene} . now ask me , and explain {parts}",
)


class TurtleEnvironment(GymEnvironment):
    """The riddle. `left`, what fits the replies by part, and `looked` are for experts."""

    def __init__(self, tools: Sequence[ToolSpec], judged: Judge | None, solved: float) -> None:
        super().__init__(tools)
        self._judge = judged
        self._solved = solved

    def begin(self, task: Task) -> None:
        """Nothing is known."""
        self._criteria: Sequence[Mapping[str, Any]] = task.goal["criteria"]
        self._surface: str = task.goal.get("surface", "")
        self._candidates: Mapping[str, Sequence[str]] = task.setup["candidates"]
        self.left = {part: list(names) for part, names in self._candidates.items()}
        self.looked = False
        self.asked = 0
        self._question = ""
        self._best = 0.0

    def call(self, tool: str, content: str) -> StepResult:
        """Look up what is possible, or judge an explanation."""
        return self._look_up(content) if tool == LOOK_UP else self._explain(content)

    def said(self, text: str) -> StepResult:
        """Remember the question; it earns nothing."""
        self._question = text
        self.asked += 1
        return StepResult()

    def hear(self, reply: UserReply) -> StepResult:
        """Rule out what does not fit the answer."""
        verdict = _VERDICT.search(reply.text)
        asked = answers_in(self._question, self._judge)
        if verdict is not None and len(asked) == 1 and not _NEGATED.search(self._question):
            ((part, named),) = asked.items()
            holds = verdict[1].startswith("y")
            if part in self.left:
                left = self.left[part]
                self.left[part] = [name for name in left if (name in named) == holds]
        return super().hear(reply)

    def needed(self) -> Sequence[str]:
        """A score that is high enough."""
        return ("solved",)

    def score(self) -> float:
        """The best explanation's score."""
        return self._best

    def _look_up(self, content: str) -> StepResult:
        self.looked = True
        asked = [part for part in self._candidates if mentions(content, part)]
        rows = [f"{p} : {' , '.join(self._candidates[p])}" for p in asked or self._candidates]
        return self.result(" ; ".join(rows) or "nothing is known about it")

    def _explain(self, content: str) -> StepResult:
        met = self._met(content)
        score = round(sum(c["weight"] for c in self._criteria if c["name"] in met), 6)
        gained = max(0.0, score - self._best)
        self._best = max(self._best, score)
        solved = ["solved"] if score >= self._solved - _NEARLY else []
        steps = [f"explained {c['name']}" for c in self._criteria if c["name"] in met]
        return self.result(f"score {score:g}", round(gained, 6), [*steps, *solved])

    def _met(self, content: str) -> set[str]:
        """The criteria that an explanation meets; a part is explained by one answer alone."""
        if not self._candidates:
            return {c["name"] for c in self._criteria if self._tells(content, c["statement"])}
        named: dict[str, set[str]] = {}
        for sentence in sentences(normal(content)):
            for part, names in answers_in(affirmed(sentence), self._judge).items():
                named.setdefault(part, set()).update(names)
        return {c["name"] for c in self._criteria if named.get(c["name"]) == {c["answer"]}}

    def _tells(self, content: str, statement: str) -> bool:
        telling = stems(statement) - stems(self._surface) or stems(statement)
        if len(telling & stems(content)) >= TELLING * max(1, len(telling)):
            return True
        whole = Subject(statement, (), statement)
        return self._judge is not None and any(
            self._judge(sentence, [whole]) for sentence in sentences(normal(content))
        )


class TurtleExpert:
    """Looks up what is possible, halves it by questions, and explains."""

    def next_action(self, state: State) -> Action:
        """A question, or the explanation.

        Raises:
            EnvironmentFault: the episode is not one of this gym.
        """
        environment = state.played_in(TurtleEnvironment)
        criteria = state.task.goal["criteria"]
        if not environment.left:  # an imported riddle, which nobody can narrow down from a list
            if not environment.asked:
                return Say(f"is it so that {criteria[0]['statement']} ?")
            text = " ".join(c["statement"].rstrip(".") + " ." for c in criteria)
            return ToolCall(EXPLAIN, {"story": text})
        if not environment.looked:
            return ToolCall(LOOK_UP, {"about": "everything"})
        if not all(environment.left.values()):
            return Say("i do not know", closing=True)
        for part, names in environment.left.items():
            if len(names) > 1:
                half = " or ".join(names[: len(names) // 2])
                return Say(f"{_ASKED[part]} {half} ?")
        known = [ANSWERS[names[0]].statement for names in environment.left.values()]
        return ToolCall(EXPLAIN, {"story": " . ".join(known)})


_ASKED = {
    "who": "is the stranger a",
    "where": "does it happen in a",
    "before": "was it about a",
    "why": "is it done because of a",
}


class Turtle(Gym):
    """Riddles to be solved."""

    Options = JudgedOptions
    name = "turtle"
    description = "An odd scene: ask what is behind it, and explain."
    policy = (
        "The user knows what is behind an odd scene. Ask questions that can be answered yes or no; "
        "a question that is right in a part is answered maybe. Look up what is possible. Then "
        "explain the scene: one sentence for each thing that was asked.\n"
    )
    tools = (
        spec(LOOK_UP, "See what is possible.", {"about": "who, where, before, why, or everything"}),
        spec(EXPLAIN, "Explain the scene.", {"story": "what is behind it"}),
    )
    choices: ClassVar[Choices] = {
        "action": None,
        "search": Use(LOOK_UP, "about"),
        "answer": Use(EXPLAIN, "story"),
    }
    kinds: ClassVar[Mapping[int, str]] = {
        level: f"{parts}_of_{size}" for level, (parts, size) in SHAPES.items()
    }

    def __init__(self, options: JudgedOptions | None = None) -> None:
        super().__init__(options)
        self._judge = judge((options or JudgedOptions()).recogniser, self.name)

    def draft(self, random: Random, level: int) -> Draft:
        """A scene, the parts that it leaves open, and what is so in each."""
        count, size = SHAPES[level]
        chosen = random.sample(list(PARTS), count)
        parts = [part for part in PARTS if part in chosen]
        weights = random.sample(SCORES[count], count)
        candidates: dict[str, list[str]] = {}
        criteria: list[dict[str, Any]] = []
        for part, weight in zip(parts, weights, strict=True):
            possible = [name for name, answer in ANSWERS.items() if answer.part == part]
            candidates[part] = random.sample(possible, size)
            true = random.choice(candidates[part])
            statement = ANSWERS[true].statement
            criteria.append(
                {"name": part, "weight": weight, "answer": true, "statement": statement}
            )
        query = random.choice(_QUERIES).format(
            scene=random.choice(SCENES), parts=" , and ".join(PARTS[part] for part in parts)
        )
        return Draft(
            self.kinds[level],
            query,
            {"criteria": criteria},
            {"candidates": candidates},
            steps(parts),
        )

    def environment(self) -> TurtleEnvironment:
        """A fresh environment."""
        solved = PUBLISHED_SOLVED if self.options.published else SOLVED
        return TurtleEnvironment(self.tools, self._judge, solved)

    def expert(self) -> TurtleExpert:
        """The expert."""
        return TurtleExpert()

    def user_view(self, task: Task) -> UserView:
        """A yes or no for all that is possible; of an imported riddle the words of its story."""
        if not task.setup["candidates"]:
            words = sorted(stems(task.goal["story"]))
            facts = [Fact(word, f"{word} {YES}", (word,)) for word in words]
        else:
            true = {c["answer"] for c in task.goal["criteria"]}
            facts = [
                Fact(name, f"{name} {YES if name in true else NO}", SUBJECTS[name].cues)
                for names in task.setup["candidates"].values()
                for name in names
            ]
        return UserView(self.name, task.query, tuple(facts), (), task.seed)

    def answer(self, history: Sequence[Message], view: UserView, random: Random) -> UserReply:
        """Yes where all that the question names is so, maybe where a part of it is."""
        question = history[-1].content
        true = {fact.name for fact in view.facts if fact.value.endswith(YES)}
        if all(fact.name in ANSWERS for fact in view.facts):
            held = [bool(n & true) for n in answers_in(question, self._judge).values()]
            half = any(held)
        else:
            held = [word in true for word in sorted(stems(question))]
            half = 2 * sum(held) >= len(held)
        if not held:
            return UserReply("i can say yes , no or maybe only", "unknown")
        if half and not all(held):
            return UserReply(random.choice(_WORDINGS[MAYBE]), "inform")
        right = all(held) != bool(_NEGATED.search(question))
        return UserReply(random.choice(_WORDINGS[YES if right else NO]), "inform")


def steps(names: Sequence[str]) -> tuple[str, ...]:
    """The milestones of a riddle: each of its criteria, and all of it."""
    return (*(f"explained {name}" for name in names), "solved")
