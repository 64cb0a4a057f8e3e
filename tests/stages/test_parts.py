"""What stages share: parts of a whole in turn, and the order of sums."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from progrl.config import load_config
from progrl.stages.parts import in_turn, set_threads

ROOT = Path(__file__).parents[2]


def first(item: str) -> str:
    return item[0]


def test_parts_take_turns_while_they_last() -> None:
    assert in_turn(["a1", "a2", "b1", "a3", "c1", "c2"], first) == [
        "a1", "b1", "c1", "a2", "c2", "a3"
    ]  # fmt: skip
    assert in_turn([], first) == []


@given(st.lists(st.from_regex(r"[abc][0-9]", fullmatch=True)))
def test_nothing_is_lost_and_each_part_keeps_its_order(items: list[str]) -> None:
    found = in_turn(items, first)
    for part in "abc":
        assert [i for i in found if i[0] == part] == [i for i in items if i[0] == part]
    assert len(found) == len(items)


@given(st.lists(st.integers()))
def test_a_single_part_stays_as_it_is(items: list[int]) -> None:
    assert in_turn(items, lambda _: "one") == items


def test_sums_of_numpy_have_as_many_threads_as_the_configuration_says() -> None:
    config = load_config(ROOT / "params.yaml", overrides=["threads=1"])
    with threadpool_limits(2, user_api="blas"):
        set_threads(config, ROOT)
        found = {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
    assert found == {1}
