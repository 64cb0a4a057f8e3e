"""Import of UserRL's own data files: their records become tasks of the same gyms."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from pydantic import ValidationError

from progrl.dialogue.tasks import Task
from progrl.environments.gyms.base import MOST_TURNS, Draft, Gym
from progrl.environments.gyms.function import Function
from progrl.environments.gyms.intention import Intention
from progrl.environments.gyms.persuade import FAR_END, Persuade
from progrl.environments.gyms.persuade import steps as stances
from progrl.environments.gyms.recognise import cues_of, sentences, stems
from progrl.environments.gyms.rules import evaluate
from progrl.environments.gyms.telepathy import Telepathy, names_of
from progrl.environments.gyms.travel import IMPORTED, Travel
from progrl.environments.gyms.travel import steps as travelled
from progrl.environments.gyms.turtle import Turtle
from progrl.environments.gyms.turtle import steps as explained
from progrl.environments.gyms.userrl_records import (
    FunctionRecord,
    IntentionRecord,
    PersuadeRecord,
    Record,
    TauRecord,
    TelepathyRecord,
    TravelRecord,
    TurtleRecord,
)
from progrl.errors import DataError
from progrl.files import digest, read_json


class _Wrong(Exception):
    """A record that has the right form and cannot be: the field, and why."""


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that was left out."""

    file: str
    record: str
    field: str
    reason: str


@dataclass(slots=True)
class Imported:
    """What a folder gave: tasks by gym, what was left out, and sound records without a gym."""

    tasks: dict[str, list[Task]] = field(default_factory=dict)
    bad: list[BadRecord] = field(default_factory=list)
    unplayed: dict[str, int] = field(default_factory=dict)


def import_userrl(folder: Path) -> Imported:
    """Read all JSON files of a folder; each record is known by its fields.

    Raises:
        DataError: the folder is not there or has no JSON file.
    """
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if not files:
        raise DataError(f"{folder}: no folder with UserRL's data files (*.json).")
    found, seen = Imported(), set[str]()
    for file in files:
        try:
            records = list(_records(read_json(file)))
        except DataError as error:
            found.bad.append(BadRecord(file.name, "-", "-", str(error)))
            continue
        for name, record in records:
            bad = _take(found, seen, name, record)
            if bad is not None:
                found.bad.append(BadRecord(file.name, name, *bad))
    return found


def _records(value: Any) -> Iterator[tuple[str, Any]]:
    """Name and value of each record: of a list, or of an object that has them by id."""
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list):
        for number, record in enumerate(value, start=1):
            own = record.get("id") if isinstance(record, Mapping) else None
            yield (own if isinstance(own, str) and own else f"#{number}"), record
    else:
        raise DataError(f"the file holds a {type(value).__name__}, neither a list nor an object.")


def _take(found: Imported, seen: set[str], name: str, record: Any) -> tuple[str, str] | None:
    """Add a record; the field that is wrong, and why, where it cannot be."""
    if not isinstance(record, Mapping):
        return "-", f"a record is an object, not a {type(record).__name__}"
    form = next((form for form in _FORMS if form.mark in record), None)
    if form is None:
        return "-", f"no known form: none of {', '.join(f.mark for f in _FORMS)} is there"
    try:
        read = form.model.model_validate_json(json.dumps(record))
        if form.gym is None or form.draft is None:
            found.unplayed[form.name] = found.unplayed.get(form.name, 0) + 1
            return None
        task = _task(form.gym(), *form.draft(read), digest(record))
    except ValidationError as error:
        first = error.errors()[0]
        return ".".join(str(part) for part in first["loc"]), first["msg"]
    except _Wrong as error:
        where, why = error.args
        return where, why
    if task.id in seen:
        return "-", "the same as an earlier record"
    seen.add(task.id)
    found.tasks.setdefault(form.name, []).append(task)
    return None


def _task(gym: Gym, draft: Draft, level: int, key: str) -> Task:
    """A task; where the expert does not solve it, it counts as taking all turns."""
    task = gym.made(draft, level, int(key[:8], 16))
    return replace(task, expert_turns=gym.expert_turns(task) or MOST_TURNS)


def _function(record: FunctionRecord) -> tuple[Draft, int]:
    try:
        value = evaluate(record.rule, record.test_case)
    except (ValueError, ArithmeticError) as error:
        raise _Wrong("rule", str(error)) from None
    if abs(value - record.expected_result) > 1e-4 * max(1.0, abs(value)):
        raise _Wrong("expected_result", f"the rule gives {value}")
    query = "there is a rule that turns four numbers into one . find out what it gives for my case"
    level = 5 if "**" in record.rule else 4 if "/" in record.rule else 3
    goal = {"rule": record.rule, "result": value}
    return Draft("imported", query, goal, {"test": record.test_case, "id": record.id}), level


def _telepathy(record: TelepathyRecord) -> tuple[Draft, int]:
    names = names_of(record.title, record.target_entity)
    if not names:
        raise _Wrong("target_entity", "it names nothing that could be guessed")
    about = f"{record.category} {record.target_entity}".replace("_", " ")
    goal = {"thing": names[0], "names": names, "about": about, "wanted": record.goal}
    setup = {"things": [], "id": record.id, "category": record.category}
    return Draft("imported", record.description, goal, setup), 5


def _intention(record: IntentionRecord) -> tuple[Draft, int]:
    details = record.missing_details
    cues = cues_of(tuple(f"{d.description} {d.inquiry}" for d in details), record.task)
    random = Random(digest(record.model_dump()))
    missing: list[dict[str, Any]] = []
    for number, detail in enumerate(details):
        name = detail.description
        if any(name == earlier["name"] for earlier in missing):
            raise _Wrong(f"missing_details.{number}.description", "the same as an earlier one")
        whole = detail.inquiry.lower().rstrip(" ?.")
        missing.append(
            {
                "name": name,
                "importance": int(detail.importance),
                "inquiry": detail.inquiry,
                "cues": [name.lower(), whole, *cues[number]],
                "value": random.choice(detail.options),
                "options": detail.options,
            }
        )
    setup = {"id": record.id, "category": record.category}
    steps = tuple(f"covered {detail['name']}" for detail in missing)
    level = min(5, max(1, len(details) - 1))
    return Draft("imported", record.task, {"told": {}, "missing": missing}, setup, steps), level


_FILLING = "includes explains mentions concludes connects involves provides protagonist"
"""What criteria say of any story: no telling words."""


def _turtle(record: TurtleRecord) -> tuple[Draft, int]:
    whole = sum(criterion.score for criterion in record.evaluation)
    if abs(whole - 1) > 0.01:
        raise _Wrong("evaluation", f"the scores sum to {whole:g}, not to 1")
    criteria: list[dict[str, Any]] = [
        {"name": str(number), "weight": c.score / whole, "statement": c.statement}
        for number, c in enumerate(record.evaluation, start=1)
    ]
    statements = " ".join(c.statement for c in record.evaluation)
    goal = {
        "criteria": criteria,
        "surface": f"{record.new_title} {record.new_surface} {_FILLING}",
        "story": f"{record.new_surface} {record.new_bottom} {statements}",
    }
    setup = {"candidates": {}, "title": record.new_title}
    names = explained([c["name"] for c in criteria])
    return Draft("imported", record.new_surface, goal, setup, names), min(5, len(criteria))


_CLAUSE = re.compile(r"[,;:]|\b(?:and|because|since|but|as)\b")


def _reasons(argument: str | list[str]) -> list[str]:
    """The reasons of an argument: its sentences, or the clauses of a single one."""
    text = argument if isinstance(argument, str) else " . ".join(argument)
    for parts in (sentences(text), _CLAUSE.split(text)):
        found = [" ".join(part.lower().split()).rstrip(" .!?") for part in parts if stems(part)]
        if len(found) > 1:
            return list(dict.fromkeys(found))[:FAR_END]
    return found


def _persuade(record: PersuadeRecord) -> tuple[Draft, int]:
    reasons = _reasons(record.argument)
    if len(reasons) < 2:
        raise _Wrong("argument", "it gives fewer than two reasons, which there is to move")
    cues = cues_of(tuple(reasons), record.claim)
    each, more = divmod(FAR_END, len(reasons))
    concerns = [
        {
            "name": f"reason {number + 1}",
            "weight": each + (number < more),
            "worry": reason,
            "cues": [reason, *cues[number]],
            "case": f"it can be seen in another way that {reason}",
            "told": False,
        }
        for number, reason in enumerate(reasons)
    ]
    setup = {"topic": record.claim, "id": str(record.id)}
    draft = Draft("imported", record.claim, {"concerns": concerns}, setup, stances())
    return draft, min(5, len(reasons))


def _travel(record: TravelRecord) -> tuple[Draft, int]:
    wanted: dict[str, dict[str, str]] = {}
    phrases: dict[str, dict[str, list[str]]] = {}
    fitting: dict[str, list[str]] = {}
    for number, dimension in enumerate(record.dimensions):
        wishes = record.preferences.get(dimension)
        if wishes is None:
            raise _Wrong(f"dimensions.{number}", f"there are no preferences for {dimension}")
        name = "_".join(dimension.lower().split())
        if name in wanted:
            raise _Wrong(f"dimensions.{number}", "the same as an earlier one")
        own = cues_of(tuple(text for _, _, text, _ in wishes.preferences))
        wanted[name], phrases[name] = {}, {}
        for place, (aspect, part, text, _) in enumerate(wishes.preferences):
            key = f"{aspect}{IMPORTED}{part}{IMPORTED}{place + 1}"
            wanted[name][key] = text
            phrases[name][key] = [f"{aspect} {part}".lower(), part.lower(), *own[place]]
        known = [key for ids in fitting.values() for key in ids]
        fitting[name] = list(dict.fromkeys([wishes.best_id, *wishes.correct_ids]))
        if any(key in known for key in fitting[name]):
            raise _Wrong(f"preferences.{dimension}", "an option of another dimension has its id")
    goal = {
        "wanted": wanted,
        "fitting": fitting,
        "best": {name: keys[0] for name, keys in fitting.items()},
    }
    setup = {
        "options": {name: {key: {} for key in keys} for name, keys in fitting.items()},
        "cues": phrases,
        "id": record.id,
        "scenario": record.scenario,
    }
    count = sum(len(own) for own in wanted.values())
    draft = Draft("imported", record.initial_desc, goal, setup, travelled(wanted))
    return draft, min(5, max(1, count // 2))


@dataclass(frozen=True, slots=True)
class _Form:
    """A kind of record, known by a field that no other kind has; the gym that plays it, if any."""

    name: str
    mark: str
    model: type[Record]
    gym: Callable[[], Gym] | None = None
    draft: Callable[[Any], tuple[Draft, int]] | None = None


_FORMS = (
    _Form("function", "rule", FunctionRecord, Function, _function),
    _Form("intention", "missing_details", IntentionRecord, Intention, _intention),
    _Form("telepathy", "target_entity", TelepathyRecord, Telepathy, _telepathy),
    _Form("turtle", "new_bottom", TurtleRecord, Turtle, _turtle),
    _Form("persuade", "claim", PersuadeRecord, Persuade, _persuade),
    _Form("travel", "dimensions", TravelRecord, Travel, _travel),
    _Form("tau", "info", TauRecord),
)
