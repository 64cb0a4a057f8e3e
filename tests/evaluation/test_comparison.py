from progrl.evaluation.comparison import difference, paired
from progrl.evaluation.examples import choose_examples

from .records import make_result


def rows(outcomes, **changes):
    return [make_result(task, ok, **changes) for task, ok in outcomes.items()]


def test_pairs_are_the_tasks_that_both_have_evidence_for():
    a = rows({"t3": True, "t1": False, "t2": None})
    b = rows({"t1": True, "t2": True, "t3": False, "t4": True})
    assert paired(a, b) == ([0.0, 1.0], [1.0, 0.0])


def test_trials_are_averaged_within_a_task():
    a = [make_result("t", ok, trial=j) for j, ok in enumerate([True, False, True, True])]
    b = [make_result("t", ok, trial=j) for j, ok in enumerate([False, False, True, False])]
    assert paired(a, b) == ([0.75], [0.25])


def test_difference_by_hand():
    # Of 8 common tasks a wins 4 alone, b none: mean 0.5.
    a = rows({f"t{i}": i < 6 for i in range(8)})
    b = rows({f"t{i}": i < 2 for i in range(8)})
    interval = difference(a, b, 0.95, 2000, 0)
    assert interval is not None
    assert interval.mean == 0.5 and interval.n == 8 and interval.excludes_zero
    reward = difference(a, b, 0.95, 2000, 0, lambda r: r.reward)
    assert reward is not None and abs(reward.mean - 0.75) < 1e-12


def test_no_common_tasks_give_no_difference():
    assert difference(rows({"a": True}), rows({"b": True}), 0.95, 100, 0) is None
    assert difference(rows({"a": True}), rows({"a": False}), 0.95, 100, 0) is None


def test_examples_are_gains_losses_and_then_all_levels():
    levels = {f"t{i}": i % 5 + 1 for i in range(20)}
    solved_before = {"t0", "t7", "t8", "t9"}
    solved_after = {"t0", "t3", "t4", "t5", "t6"}
    before = [make_result(t, t in solved_before, level=n) for t, n in levels.items()]
    after = [make_result(t, t in solved_after, level=n) for t, n in levels.items()]
    chosen = choose_examples(before, after, 6)
    assert chosen == ["t3", "t4", "t7", "t8", "t0", "t1"]
    assert sorted(choose_examples(before, after, 100)) == sorted(levels)
    assert choose_examples(before, after, 0) == []


def test_examples_leave_faults_out():
    before = rows({"a": None, "b": True})
    after = rows({"a": True, "b": True})
    assert choose_examples(before, after, 5) == ["b"]
