"""Import of UserRL's own data files: their records become tasks of the same gyms."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from progrl.dialogue.tasks import Task
from progrl.environments.gyms.base import MOST_TURNS, Draft, Gym
from progrl.environments.gyms.function import Function
from progrl.environments.gyms.intention import Intention
from progrl.environments.gyms.recognise import cues_of
from progrl.environments.gyms.rules import evaluate
from progrl.environments.gyms.telepathy import Telepathy, names_of
from progrl.errors import DataError
from progrl.files import digest, read_json

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]


class _Record(BaseModel):
    # What other fields a file has is no concern of ours; those that are read are read strictly.
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class _Detail(_Record):
    description: Text
    importance: Literal["1", "2", "3"]
    inquiry: Text
    options: list[Text] = Field(min_length=1)


class _Intention(_Record):
    id: Text
    category: Text
    task: Text
    missing_details: list[_Detail] = Field(min_length=1, max_length=MOST_TURNS)


class _Telepathy(_Record):
    id: Text
    title: Text
    description: Text
    goal: Text
    target_entity: Text
    category: Text


class _Function(_Record):
    id: Text
    rule: Text
    test_case: list[int] = Field(min_length=4, max_length=4)
    expected_result: float


class _Criterion(_Record):
    statement: Text
    score: float = Field(gt=0, le=1)


class _Story(_Record):
    new_title: Text
    new_surface: Text
    new_bottom: Text
    evaluation: list[_Criterion] = Field(min_length=1)


class _Call(_Record):
    name: Text
    kwargs: dict[str, Any]


class _Order(_Record):
    user_id: Text
    actions: list[_Call]
    instruction: Text
    outputs: list[str]


class _Info(_Record):
    task: _Order


class _Tau(_Record):
    id: Text
    obs: str
    info: _Info


class _Wishes(_Record):
    preferences: list[tuple[Text, Text, Text, Any]] = Field(min_length=1)
    best_id: Text
    correct_ids: list[Text] = Field(min_length=1)


class _Travel(_Record):
    id: Text
    scenario: Text
    initial_desc: Text
    dimensions: list[Text] = Field(min_length=1)
    preferences: dict[str, _Wishes]


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


def _function(record: _Function) -> tuple[Draft, int]:
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


def _telepathy(record: _Telepathy) -> tuple[Draft, int]:
    names = names_of(record.title, record.target_entity)
    if not names:
        raise _Wrong("target_entity", "it names nothing that could be guessed")
    about = f"{record.category} {record.target_entity}".replace("_", " ")
    goal = {"thing": names[0], "names": names, "about": about, "wanted": record.goal}
    setup = {"things": [], "id": record.id, "category": record.category}
    return Draft("imported", record.description, goal, setup), 5


def _intention(record: _Intention) -> tuple[Draft, int]:
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


@dataclass(frozen=True, slots=True)
class _Form:
    """A kind of record, known by a field that no other kind has; the gym that plays it, if any."""

    name: str
    mark: str
    model: type[_Record]
    gym: Callable[[], Gym] | None = None
    draft: Callable[[Any], tuple[Draft, int]] | None = None


_FORMS = (
    _Form("function", "rule", _Function, Function, _function),
    _Form("intention", "missing_details", _Intention, Intention, _intention),
    _Form("telepathy", "target_entity", _Telepathy, Telepathy, _telepathy),
    _Form("turtle", "new_bottom", _Story),
    _Form("tau", "info", _Tau),
    _Form("travel", "dimensions", _Travel),
)
