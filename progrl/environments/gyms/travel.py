"""The gym `travel`: find out what the user wants of a trip, search, and recommend."""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, ClassVar

from pydantic import Field

from progrl.dialogue.acts import mentions
from progrl.dialogue.messages import Action, Message, Say, ToolCall
from progrl.dialogue.tasks import Task
from progrl.dialogue.users import Fact, UserReply, UserView
from progrl.environments.choices import Choices, Use
from progrl.environments.contracts import State, StepResult
from progrl.environments.gyms.base import Draft, Gym, GymEnvironment
from progrl.environments.gyms.recognise import JudgedOptions, judge
from progrl.environments.gyms.trips import (
    DIMENSIONS,
    OPTIONS,
    Guide,
    ImportedGuide,
    Preferences,
    conversation,
    draw_options,
    draw_preferences,
    fitting_by_price,
    values_in,
)
from progrl.environments.service.tools import spec

SEARCH, RECOMMEND = "search_options", "recommend"
ELICITED, SEARCHED, BEST, FITTING = 0.2, 0.2, 1.0, 0.8
PUBLISHED_ELICITED, PUBLISHED_SEARCHED = 0.8, 0.0
FAILING = 5
"""Every so many searches one fails on purpose."""
SHOWN = 4
"""Options that a search shows at most."""

WISHES: Mapping[int, tuple[int, ...]] = {1: (2,), 2: (1, 2), 3: (2, 2), 4: (2, 1, 2), 5: (3, 3, 3)}
"""How many preferences there are in each dimension, by level."""

IMPORTED = " / "
"""In the name of an imported preference, between its aspect and what of it."""

_ID = re.compile(r"\b[a-z]\d{2}\b")
_QUERIES = (
    "i plan a trip and need {parts} . find me the cheapest that suits me",
    "please help me to book {parts} . it should suit me , and be the cheapest that does",
    "for my holiday i want {parts} . what is the cheapest that fits my wishes ?",
    "hi , i am looking for {parts} , as i like it and no dearer than it must be",
    "can you recommend {parts} ? i take the cheapest that is right for me",
)
_TELLS = ("i would like {v}", "{v} please", "i prefer {v}", "{v} , if possible", "i want {v}")


class TravelOptions(JudgedOptions):
    """What may be chosen of the gym."""

    one_choice: bool = Field(
        default=False,
        description="One recommendation counts for each thing to book, and the last ends it.",
    )


class TravelEnvironment(GymEnvironment):
    """The trip. `wanted`, `heard` and `shown` are for experts; `shown` has what fits by price."""

    def __init__(self, tools: Sequence[Any], options: TravelOptions, guide: Guide) -> None:
        super().__init__(tools)
        self._ours = guide
        self._one_choice = options.one_choice
        self._elicited = PUBLISHED_ELICITED if options.published else ELICITED
        self._searched = PUBLISHED_SEARCHED if options.published else SEARCHED

    def begin(self, task: Task) -> None:
        """Nothing has been told, and nothing found."""
        self.wanted: Preferences = task.goal["wanted"]
        self._best: Mapping[str, str] = task.goal["best"]
        self._fitting: Mapping[str, Sequence[str]] = task.goal["fitting"]
        self._options: Mapping[str, Mapping[str, Mapping[str, str]]] = task.setup["options"]
        self.cues: Mapping[str, Mapping[str, Sequence[str]]] = task.setup.get("cues", {})
        self._guide = ImportedGuide(self.cues) if self.cues else self._ours
        self.heard: set[tuple[str, str]] = set()
        self.shown: dict[str, list[str]] = {}
        self._said: list[str] = []
        self._searches = 0
        self._scores = dict.fromkeys(self.wanted, 0.0)
        self._chosen: set[str] = set()

    def said(self, text: str) -> StepResult:
        """A question that finds out a preference is worth something."""
        self._said.append(text)
        told = conversation(self.wanted, self._said, self._guide)[-1]
        return self.result(reward=self._elicited if told.how == "asked" else 0.0)

    def hear(self, reply: UserReply) -> StepResult:
        """Take in what the user tells, asked or not."""
        super().hear(reply)
        new = [
            (dimension, aspect)
            for dimension, aspects in self.wanted.items()
            for aspect, value in aspects.items()
            if mentions(reply.text, value)
        ]
        self.heard.update(new)
        return self.result(steps=[f"heard {dimension} {aspect}" for dimension, aspect in new])

    def call(self, tool: str, content: str) -> StepResult:
        """Search, or judge a recommendation."""
        return self._search(content) if tool == SEARCH else self._recommend(content)

    def needed(self) -> Sequence[str]:
        """The best option of everything."""
        return [f"found {dimension}" for dimension in self.wanted]

    def score(self) -> float:
        """The mean over all that is to be booked of what the best recommendation was worth."""
        return sum(self._scores.values()) / len(self._scores)

    def _search(self, query: str) -> StepResult:
        self._searches += 1
        if self._searches % FAILING == 0:
            return self.error("the search is down , try again")
        about = [name for name in self._guide.dimensions_in(query) if name in self.wanted]
        if len(about) != 1:
            return self.error(f"search for one of : {' , '.join(self.wanted)}")
        (name,) = about
        right, rows = self._imported(query, name) if self.cues else self._found(query, name)
        fresh = right and f"searched {name}" not in self._reached
        return self.result(
            rows or "nothing found",
            self._searched if fresh else 0.0,
            [f"searched {name}"] if right else [],
        )

    def _imported(self, query: str, name: str) -> tuple[bool, str]:
        """The options that fit, where the query has a telling word of each preference."""
        right = len(self._guide.aspects_in(query, name)) == len(self.wanted[name])
        if right:
            self.shown[name] = list(self._fitting[name])
        return right, " ; ".join(sorted(self._fitting[name])) if right else ""

    def _found(self, query: str, name: str) -> tuple[bool, str]:
        """Whether the query has just what is wanted, and the first options that have it."""
        given = values_in(query, name)
        found = [
            (key, option)
            for key, option in self._options[name].items()
            if all(option[aspect] == value for aspect, value in given)
        ][:SHOWN]
        right = dict(given) == dict(self.wanted[name]) and len(given) == len(self.wanted[name])
        if right:
            self.shown[name] = fitting_by_price(dict(found), self.wanted[name])
        return right, " ; ".join(f"{key} {' '.join(option.values())}" for key, option in found)

    def _recommend(self, content: str) -> StepResult:
        keys = list(dict.fromkeys(_ID.findall(content.lower())))
        if self.cues:
            keys = [
                k for options in self._options.values() for k in options if mentions(content, k)
            ]
        if len(keys) != 1:
            return self.error("recommend one option by its id")
        name = next((n for n, options in self._options.items() if keys[0] in options), None)
        if name is None:
            return self.error(f"no option {keys[0]}")
        if self._scores[name] == BEST or (self._one_choice and name in self._chosen):
            return self.error(f"the {name} is settled")
        self._chosen.add(name)
        if keys[0] == self._best[name]:
            self._scores[name] = BEST
            return self._settled(self.result("the best", BEST, [f"found {name}"]))
        fits = keys[0] in self._fitting[name]
        paid = fits and not self._scores[name]
        self._scores[name] = FITTING if fits else self._scores[name]
        text = "it fits , but is not the cheapest" if fits else "it does not fit"
        return self._settled(self.result(text, FITTING if paid else 0.0))

    def _settled(self, result: StepResult) -> StepResult:
        """With one choice each, the last one ends the episode."""
        if self._one_choice and len(self._chosen) == len(self.wanted) and not result.done:
            return self.ended(result)
        return result


class TravelExpert:
    """Asks for what it has not heard, searches for all of it, recommends the cheapest shown."""

    def next_action(self, state: State) -> Action:
        """The next step for the first thing that is not booked.

        Raises:
            EnvironmentFault: the episode is not one of this gym.
        """
        environment = state.played_in(TravelEnvironment)
        reached = environment.outcome().milestones
        for name, aspects in environment.wanted.items():
            if f"found {name}" in reached:
                continue
            cues = environment.cues.get(name) or {a.name: a.cues for a in DIMENSIONS[name]}
            for aspect, phrases in cues.items():
                if aspect in aspects and (name, aspect) not in environment.heard:
                    return Say(f"which {phrases[0]} do you want for the {name} ?")
            if name not in environment.shown:
                return ToolCall(SEARCH, {"query": " ".join([name, *aspects.values()])})
            return ToolCall(RECOMMEND, {"option": environment.shown[name][0]})
        return Say("bye", closing=True)


class Travel(Gym):
    """Trips to be planned."""

    Options = TravelOptions
    name = "travel"
    description = "Trips: find out preferences, search, and recommend what fits best."
    policy = (
        "Find out what the user wants of each thing to book, by one question for each aspect. "
        "Search for one thing with all that the user wants of it, and recommend the cheapest "
        "option that fits by its id.\n"
    )
    tools = (
        spec(SEARCH, "Search for options.", {"query": "what to book, and what the user wants"}),
        spec(RECOMMEND, "Recommend an option.", {"option": "its id"}),
    )
    choices: ClassVar[Choices] = {
        "action": None,
        "search": Use(SEARCH, "query"),
        "answer": Use(RECOMMEND, "option"),
    }
    kinds: ClassVar[Mapping[int, str]] = {
        level: f"{len(each)}_with_{sum(each)}" for level, each in WISHES.items()
    }

    def __init__(self, options: TravelOptions | None = None) -> None:
        super().__init__(options)
        self._own = options or TravelOptions()
        self._guide = Guide(judge(self._own.recogniser, self.name))

    def draft(self, random: Random, level: int) -> Draft:
        """A trip with preferences and options."""
        wanted = draw_preferences(random, WISHES[level])
        options = {
            name: draw_options(random, name, own, random.sample(range(20, 400), OPTIONS))
            for name, own in wanted.items()
        }
        fitting = {name: fitting_by_price(options[name], own) for name, own in wanted.items()}
        # What is minded is said: nobody could know otherwise what to ask for.
        parts = [f"a {name} of the right {minded(name, own)}" for name, own in wanted.items()]
        best = {name: keys[0] for name, keys in fitting.items()}
        return Draft(
            self.kinds[level],
            random.choice(_QUERIES).format(parts=" , and ".join(parts)),
            {"wanted": wanted, "fitting": fitting, "best": best},
            {"options": options},
            steps(wanted),
        )

    def environment(self) -> TravelEnvironment:
        """A fresh environment."""
        return TravelEnvironment(self.tools, self._own, self._guide)

    def expert(self) -> TravelExpert:
        """The expert."""
        return TravelExpert()

    def user_view(self, task: Task) -> UserView:
        """The preferences, each told when asked for."""
        imported: Mapping[str, Mapping[str, Sequence[str]]] = task.setup.get("cues", {})
        facts = [
            Fact(f"{name} {aspect}", own[aspect], tuple(cues))
            for name, own in task.goal["wanted"].items()
            for aspect, cues in (
                imported.get(name) or {a.name: a.cues for a in DIMENSIONS[name]}
            ).items()
            if aspect in own
        ]
        return UserView(self.name, task.query, tuple(facts), (), task.seed)

    def answer(self, history: Sequence[Message], view: UserView, random: Random) -> UserReply:
        """One preference that the question asks for; one unasked where nothing is found out."""
        wanted: dict[str, dict[str, str]] = {}
        for fact in view.facts:
            name, _, aspect = fact.name.partition(" ")
            wanted.setdefault(name, {})[aspect] = fact.value
        questions = [m.content for m in history if m.role == "assistant"]
        told = conversation(wanted, questions, self._guide_for(view))[-1]
        if told.how == "indifferent":
            return UserReply("i do not mind", "unknown")
        if told.how == "vague":
            return UserReply("what do you want to know ?", "clarify")
        value = wanted[told.dimension][told.aspect]
        words = f"for the {told.dimension} {random.choice(_TELLS).format(v=value)}"
        if told.how == "again":
            return UserReply(f"as i said , {words}", "repeat")
        return UserReply(words if told.how == "asked" else f"by the way , {words}", "inform")

    def _guide_for(self, view: UserView) -> Guide:
        """How the user of a task reads questions: those of imported tasks have their own cues."""
        if not any(IMPORTED in fact.name for fact in view.facts):
            return self._guide
        cues: dict[str, dict[str, Sequence[str]]] = {}
        for fact in view.facts:
            name, _, aspect = fact.name.partition(" ")
            cues.setdefault(name, {})[aspect] = fact.cues
        return ImportedGuide(cues)


def minded(name: str, own: Mapping[str, str]) -> str:
    """The aspects that the user has wishes for, in words that a question may have."""
    return " and ".join(a.cues[0] for a in DIMENSIONS[name] if a.name in own)


def steps(wanted: Preferences) -> tuple[str, ...]:
    """The milestones of a trip: each preference heard, each thing searched for and found."""
    heard = [f"heard {name} {aspect}" for name, own in wanted.items() for aspect in own]
    done = [f"{did} {name}" for name in wanted for did in ("searched", "found")]
    return (*heard, *done)
