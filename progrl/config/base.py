"""What all configuration models share."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, Strict


class Section(BaseModel):
    """A strict, immutable part of the configuration; unknown keys are errors, and so are values of
    another type: `"1"` and `true` are no numbers, `1` is no truth value.

    No field has a default: `params.yaml` says everything, so nothing is decided in two places.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        use_attribute_docstrings=True,
        allow_inf_nan=False,
    )


# YAML has neither paths nor tuples: they are made of its words and lists.
Folder = Annotated[Path, Strict(False)]
Names = Annotated[tuple[str, ...], Strict(False)]
Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Positive = Annotated[float, Field(gt=0)]
NonNegative = Annotated[float, Field(ge=0)]
Rate = Annotated[float, Field(gt=0, le=10)]
Level = Annotated[int, Field(ge=1, le=5)]


def _threads(value: object) -> object:
    if value == "auto" or (type(value) is int and 1 <= value <= 1024):
        return value
    raise ValueError("Input should be a whole number from 1 to 1024, or auto")


Threads = Annotated[
    int | Literal["auto"],
    PlainValidator(
        _threads, json_schema_input_type=Annotated[int, Field(ge=1, le=1024)] | Literal["auto"]
    ),
]
