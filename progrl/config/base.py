"""What all configuration models share."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, Strict


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
