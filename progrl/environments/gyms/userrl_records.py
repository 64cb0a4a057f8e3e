"""The records of UserRL's data files, by the fields that they have."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from progrl.environments.gyms.base import MOST_TURNS

Text = Annotated[str, Field(min_length=1, pattern=r"\S")]


class Record(BaseModel):
    """What of a record is read."""

    # What other fields a file has is no concern of ours; those that are read are read strictly.
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class Detail(Record):
    """What a want leaves open."""

    description: Text
    importance: Literal["1", "2", "3"]
    inquiry: Text
    options: list[Text] = Field(min_length=1)


class IntentionRecord(Record):
    """Of `intention`."""

    id: Text
    category: Text
    task: Text
    missing_details: list[Detail] = Field(min_length=1, max_length=MOST_TURNS)


class TelepathyRecord(Record):
    """Of `telepathy`."""

    id: Text
    title: Text
    description: Text
    goal: Text
    target_entity: Text
    category: Text


class FunctionRecord(Record):
    """Of `function`."""

    id: Text
    rule: Text
    test_case: list[int] = Field(min_length=4, max_length=4)
    expected_result: float


class Criterion(Record):
    """A criterion of an explanation."""

    statement: Text
    score: float = Field(gt=0, le=1)


class TurtleRecord(Record):
    """Of `turtle`."""

    new_title: Text
    new_surface: Text
    new_bottom: Text
    evaluation: list[Criterion] = Field(min_length=1)


class Call(Record):
    """A call of a tool."""

    name: Text
    kwargs: dict[str, Any]


class Order(Record):
    """What a customer wants."""

    user_id: Text
    actions: list[Call]
    instruction: Text
    outputs: list[str]


class Info(Record):
    """What surrounds it."""

    task: Order


class TauRecord(Record):
    """Of `tau`."""

    id: Text
    obs: str
    info: Info


class Wishes(Record):
    """Preferences for one thing, and the options that have them."""

    preferences: list[tuple[Text, Text, Text, Any]] = Field(min_length=1)
    best_id: Text
    correct_ids: list[Text] = Field(min_length=1)


class TravelRecord(Record):
    """Of `travel`."""

    id: Text
    scenario: Text
    initial_desc: Text
    dimensions: list[Text] = Field(min_length=1)
    preferences: dict[str, Wishes]


class PersuadeRecord(Record):
    """Of `persuade`: what somebody claims, and the reasons for it."""

    id: Text | int
    claim: Text
    argument: Text | list[Text] = Field(min_length=1)
