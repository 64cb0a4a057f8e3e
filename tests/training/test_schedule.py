"""Learning-rate schedules by hand."""

import pytest
from pydantic import TypeAdapter

from progrl.config.training import Schedule
from progrl.training.schedule import rate


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"kind": "constant", "warmup": 0.0}, [1, 1, 1]),
        ({"kind": "linear", "warmup": 0.0, "final": 0.0}, [1, 0.5, 0.1]),
        ({"kind": "cosine", "warmup": 0.0, "final": 0.2}, [1, 0.6, 0.2196]),
        ({"kind": "trapezoid", "warmup": 0.0, "flat": 0.5, "final": 0.0}, [1, 1, 0.2]),
    ],
)
def test_first_middle_and_last_of_ten_steps(
    values: dict[str, object], expected: list[float]
) -> None:
    schedule = TypeAdapter(Schedule).validate_python(values)
    assert [rate(schedule, s, 10) for s in (0, 5, 9)] == pytest.approx(expected, abs=1e-4)


def test_the_rise_starts_above_zero_and_ends_at_the_peak() -> None:
    schedule = TypeAdapter(Schedule).validate_python({"kind": "constant", "warmup": 0.4})
    assert [rate(schedule, s, 10) for s in range(5)] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
