"""The seed tree: distinct, stable, independent of order."""

from hypothesis import given
from hypothesis import strategies as st

from progrl.seeds import Seed


def test_a_hundred_thousand_nodes_are_distinct() -> None:
    root = Seed.root(1)
    values = {root.value}
    count = 1
    for step in range(50):
        at_step = root.child("step", step)
        values.add(at_step.value)
        count += 1
        for task in range(100):
            at_task = at_step.child("task", task)
            values.add(at_task.value)
            values.update(at_task.child("episode", episode).value for episode in range(20))
            count += 21
    assert count > 100_000
    assert len(values) == count


def test_values_are_the_same_in_every_version_and_on_every_platform() -> None:
    assert Seed.root(1).value == 8405981537141029492
    assert Seed.root(1).child("step", 3).child("task", 4).value == 1658210892161846550


def test_runs_of_different_seeds_share_nothing() -> None:
    one, two = ({Seed.root(seed).child("episode", n).value for n in range(1000)} for seed in (1, 2))
    assert not one & two


def test_generators_are_fresh_at_every_call() -> None:
    node = Seed.root(1).child("task", 7)
    assert node.random().random() == node.random().random()


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 99)), max_size=4),
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 99)), max_size=4),
)
def test_different_paths_have_different_values(
    left: list[tuple[str, int]], right: list[tuple[str, int]]
) -> None:
    nodes = []
    for path in (left, right):
        node = Seed.root(1)
        for name, key in path:
            node = node.child(name, key)
        nodes.append(node)
    assert (nodes[0].value == nodes[1].value) == (left == right)
    assert all(0 <= node.value < 2**63 for node in nodes)
