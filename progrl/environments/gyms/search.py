"""The gym `search`: answer a question from what searches show."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import ClassVar

from progrl.dialogue.messages import Action, Message, Say, ToolCall
from progrl.dialogue.tasks import Task
from progrl.dialogue.users import UserReply, UserView
from progrl.environments.choices import Choices, Use
from progrl.environments.contracts import State, StepResult
from progrl.environments.gyms.base import Draft, Gym, GymEnvironment
from progrl.environments.gyms.corpus import Corpus, corpus
from progrl.environments.service.tools import spec

SEARCH, ANSWER = "search_texts", "give_answer"
MOST_SEARCHES = 5


@dataclass(frozen=True, slots=True)
class Question:
    """A question as it is drawn: `reads` are the documents that lead to the answer, with queries.

    `kind` is that of the answer: what else of this kind an answer names makes it wrong.
    """

    text: str
    answer: str
    kind: str
    reads: tuple[tuple[str, str], ...]


class SearchEnvironment(GymEnvironment):
    """A question and a corpus. `plan` and `read` are for experts."""

    def begin(self, task: Task) -> None:
        """Nothing has been read."""
        self._corpus = corpus(task.setup["corpus"])
        self._answer: str = task.goal["answer"]
        self._kind: str = task.goal["kind"]
        self.plan: Sequence[Sequence[str]] = task.goal["reads"]
        self.read: set[str] = set()
        self.searches = 0

    def call(self, tool: str, content: str) -> StepResult:
        """Search, or judge an answer."""
        if tool == SEARCH:
            return self._search(content)
        named = self._corpus.named(self._kind, content)
        if len(named) > 1:
            return self.error("give one answer")
        if named == [self._answer]:
            return self.result("right", 1.0, ["solved"])
        return self.result("wrong")

    def needed(self) -> Sequence[str]:
        """The right answer, however it was found."""
        return ("solved",)

    def _search(self, query: str) -> StepResult:
        if self.searches == MOST_SEARCHES:
            return self.error("no searches are left")
        self.searches += 1
        found = self._corpus.search(query)
        self.read.update(found)
        steps = [f"read {n}" for n, (subject, _) in enumerate(self.plan) if subject in self.read]
        text = " ; ".join(self._corpus.texts[subject] for subject in found)
        return self.result(text or "nothing found", steps=steps)


class SearchExpert:
    """Reads document after document, each search with what the one before has shown."""

    def next_action(self, state: State) -> Action:
        """A search for the first document that was not read, or the answer.

        Raises:
            EnvironmentFault: the episode is not one of this gym.
        """
        environment = state.played_in(SearchEnvironment)
        for subject, query in environment.plan:
            if subject not in environment.read:
                if environment.searches == MOST_SEARCHES:
                    return Say("i could not find it", closing=True)
                return ToolCall(SEARCH, {"query": query})
        return ToolCall(ANSWER, {"answer": state.task.goal["answer"]})


def _direct(random: Random, known: Corpus) -> Question:
    book, firm, person = (random.choice(known.kinds[kind]) for kind in ("book", "firm", "person"))
    facts = known.facts
    author, founder = _maker(book, "author"), _maker(firm, "founder")
    own, himself = facts[person], ((person, person),)
    return random.choice(
        [
            Question(f"who wrote {book} ?", facts[book]["author"], "person", (author,)),
            Question(f"who founded {firm} ?", facts[firm]["founder"], "person", (founder,)),
            Question(f"when was {person} born ?", own["born"], "year", himself),
            Question(f"where was {person} born ?", own["town"], "town", himself),
            Question(f"what was {person} ?", own["trade"], "trade", himself),
        ]
    )


def _reverse(random: Random, known: Corpus) -> Question:
    kind, fact, words = random.choice(
        [
            ("book", "topic", "which book is about {} ?"),
            ("firm", "goods", "which firm makes {} ?"),
            ("person", "trade", "who was a {} ?"),
            ("town", "fame", "which town is known for its {} ?"),
        ]
    )
    subject = random.choice(known.kinds[kind])
    value = known.facts[subject][fact]
    return Question(words.format(value), subject, kind, ((subject, value),))


def _over_two(random: Random, known: Corpus) -> Question:
    whose, first, person = _described(random, known)
    asked, kind, words = random.choice(
        [
            ("town", "town", "where was the person born"),
            ("born", "year", "when was the person born"),
            ("trade", "trade", "what trade had the person"),
        ]
    )
    answer = known.facts[person][asked]
    return Question(f"{words} {whose} ?", answer, kind, (first, (person, person)))


def _over_three(random: Random, known: Corpus) -> Question:
    whose, first, person = _described(random, known)
    town = known.facts[person]["town"]
    asked, words = random.choice(
        [
            ("fame", "what is the town known for in which the person was born"),
            ("year", "when was the town founded in which the person was born"),
        ]
    )
    reads = (first, (person, person), (town, f"{town} town"))
    return Question(f"{words} {whose} ?", known.facts[town][asked], asked, reads)


def _comparison(random: Random, known: Corpus) -> Question:
    books = random.sample(known.kinds["book"], 2)
    authors = [known.facts[book]["author"] for book in books]
    by_age = sorted(authors, key=lambda name: int(known.facts[name]["born"]))
    which, answer = random.choice([("first", by_age[0]), ("last", by_age[1])])
    text = f"who was born {which} , the author of {books[0]} or the author of {books[1]} ?"
    reads = [_maker(book, "author") for book in books] + [(name, name) for name in authors]
    return Question(text, answer, "person", tuple(reads))


def _maker(thing: str, role: str) -> tuple[str, str]:
    """The document that names who made a thing, and the query for it."""
    return thing, f"{thing} {role}"


def _described(random: Random, known: Corpus) -> tuple[str, tuple[str, str], str]:
    """A person in words that do not name it, the document that does, and the name."""
    kind, role, words = random.choice(
        [("book", "author", "who wrote"), ("firm", "founder", "who founded")]
    )
    thing = random.choice(known.kinds[kind])
    return f"{words} {thing}", _maker(thing, role), known.facts[thing][role]


_DRAWS: Mapping[str, Callable[[Random, Corpus], Question]] = {
    "direct": _direct,
    "reverse": _reverse,
    "two_texts": _over_two,
    "three_texts": _over_three,
    "comparison": _comparison,
}
"""How each family of questions is drawn, the easiest first."""


class Search(Gym):
    """Questions that a small corpus answers."""

    name = "search"
    description = "Questions that are answered from what a search in a small corpus shows."
    policy = (
        f"Answer the question by what you find. At most {MOST_SEARCHES} searches are allowed, each "
        "shows two texts. Give one answer.\n"
    )
    tools = (
        spec(SEARCH, "Search the texts.", {"query": "words to look for"}),
        spec(ANSWER, "Answer the question.", {"answer": "a name, a year, or a word"}),
    )
    choices: ClassVar[Choices] = {"search": Use(SEARCH, "query"), "answer": Use(ANSWER, "answer")}
    kinds: ClassVar[Mapping[int, str]] = dict(enumerate(_DRAWS, start=1))

    def draft(self, random: Random, level: int) -> Draft:
        """A corpus of its own, and a question about it."""
        seed = random.getrandbits(48)
        made = _DRAWS[self.kinds[level]](random, corpus(seed))
        goal = {"answer": made.answer, "kind": made.kind, "reads": [list(r) for r in made.reads]}
        steps = (*(f"read {n}" for n in range(len(made.reads))), "solved")
        return Draft(self.kinds[level], made.text, goal, {"corpus": seed}, steps)

    def environment(self) -> SearchEnvironment:
        """A fresh environment."""
        return SearchEnvironment(self.tools)

    def expert(self) -> SearchExpert:
        """The expert."""
        return SearchExpert()

    def answer(self, history: Sequence[Message], view: UserView, random: Random) -> UserReply:
        """Who asks does not know."""
        return UserReply("i do not know . please search for it", "unknown")
