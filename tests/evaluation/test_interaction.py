import pytest
from hypothesis import given
from hypothesis import strategies as st

from progrl.dialogue.messages import Say, ToolCall
from progrl.dialogue.trajectories import End, Outcome, Trajectory, Turn
from progrl.evaluation.interaction import (
    Ratio,
    changed_calls,
    coherence,
    ignored_corrections,
    judge_turns,
    pooled,
    satisfaction,
)

ASK = "what is your email ?"


def say(text, act="", heard="", closing=False):
    return Turn(Say(text, closing), text, heard, "user" if act else "", act=act)


def call(name="get_order", failed=False, result="order 12 pending ; points 525", **arguments):
    action = ToolCall(name, arguments)
    return Turn(action, str(action), result, "tool", failed=failed)


def broken(text):
    return Turn(None, text, "error: no action", "tool", failed=True)


def episode(*turns, end=End.CLOSED, success=True, progress=1.0):
    outcome = None if end is End.FAULT else Outcome(success, progress, (), True, 1.0)
    return Trajectory(
        "t-1", "toy", "look", 1, 2, "order 12 please", 20, 1, list(turns), end, "", outcome
    )


def only(trajectory):
    """The judgement of the last turn."""
    return judge_turns(trajectory)[-1]


def test_a_question_is_repeated_where_the_user_says_it_again():
    first, second = judge_turns(episode(say(ASK, "inform", "a@b.c"), say(ASK, "repeat", "a@b.c")))
    assert first.question and not first.violated and second.repeated


def test_the_same_words_after_an_answer_are_a_repetition_whatever_the_user_calls_it():
    assert only(episode(say(ASK, "inform", "a@b.c"), say(ASK, "leave", "bye"))).repeated
    # It had not been answered: the user asked back, or had second thoughts instead.
    assert not only(episode(say(ASK, "clarify", "why ?"), say(ASK, "inform", "x"))).repeated
    assert not only(episode(say(ASK, "change_goal", "wait"), say(ASK, "inform", "x"))).repeated
    changed = episode(
        say(ASK, "inform", "x"), say("what else ?", "change_goal", "y"), say(ASK, "inform", "z")
    )
    assert not only(changed).repeated


def test_confirmations_and_offers_are_no_questions():
    assert not only(episode(say("cancel order 12 . confirm ?", "confirm", "yes"))).possible
    assert not only(episode(say("anything else ?", "thank", "no"))).possible


@pytest.mark.parametrize(
    ("words", "contradicts"),
    [
        ("you have 525 points", False),
        ("you have 700 points", True),
        ("the points are 700 now", True),
        ("order 12 is paid by gift-3", False),  # no label of the result stands beside gift-3
        ("order 13 is pending", True),
        ("points will come soon", False),
    ],
)
def test_statements_against_the_last_result(words, contradicts):
    judged = only(episode(call(order="12"), say(words, closing=True)))
    assert judged.statement and judged.contradicts is contradicts


def test_what_the_user_or_an_earlier_result_showed_is_no_invention():
    told = say("which points ?", "inform", "points 700")
    assert not only(episode(told, call(), say("you have 700 points"))).contradicts
    assert not only(episode(call(result="points 700"), call(), say("700 points"))).contradicts


def test_success_reported_after_an_error_contradicts_it():
    refused = call("cancel", failed=True, result="error: order 12 is lost")
    assert only(episode(refused, say("it has been cancelled", closing=True))).contradicts
    assert not only(episode(refused, say("cannot cancel it , bye", closing=True))).contradicts
    assert not only(episode(refused, say("is it done ?", "inform", "no"))).contradicts


def test_a_failed_call_is_repeated_only_while_nothing_changed():
    wrong = call("cancel", failed=True, result="error: no order 9", order="9")
    assert only(episode(wrong, wrong)).unchanged
    assert only(episode(wrong, call("cancel", order="12"))) == only(episode(wrong, call()))
    assert not only(episode(wrong, call("find_user"), wrong)).retry
    assert not only(episode(wrong, say(ASK, "inform", "x"), wrong)).retry
    busy = call("cancel", failed=True, result="error: system busy , try again", order="9")
    assert not only(episode(busy, busy)).possible


def test_coherence_by_hand():
    wrong = call("cancel", failed=True, result="error: no order 9", order="9")
    # Possible in five turns: two questions, a retry, a retry unchanged, a statement.
    trajectory = episode(
        say(ASK, "inform", "a@b.c"),
        say(ASK, "repeat", "a@b.c"),  # violates
        wrong,
        wrong,  # violates
        call(order="12"),
        say("you have 525 points", closing=True),
    )
    assert coherence(trajectory) == Ratio(3, 5) and coherence(trajectory).value == 0.6
    assert coherence(episode(say("bye", closing=True))).value is None


def test_changed_calls_by_hand():
    wrong = call("cancel", failed=True, result="error: no order 9", order="9")
    busy = call("cancel", failed=True, result="error: system busy , try again", order="12")
    # Of four failures that count two are changed; the last has no call after it.
    trajectory = episode(
        wrong, wrong, say("a moment", "wait"), busy, busy, broken("say"), call(), wrong
    )
    assert changed_calls(trajectory) == Ratio(2, 4)
    assert changed_calls(episode(busy, busy)).value is None
    assert changed_calls(episode(broken("say"), broken("say"), broken("close"))) == Ratio(1, 3)


def test_ignored_corrections_by_hand():
    wrong = say("cancel order 13 . confirm ?", "correct", "no , order 12")
    heeded = say("cancel order 12 . confirm ?", "confirm", "yes")
    assert ignored_corrections(episode(wrong, call(), heeded)) == Ratio(0, 1)
    assert ignored_corrections(episode(wrong, wrong, heeded)) == Ratio(1, 2)
    assert ignored_corrections(episode(wrong, call())) == Ratio(1, 1)
    assert ignored_corrections(episode(heeded)).value is None


def test_satisfaction_with_the_goal_by_hand():
    good = say(ASK, "inform", "x")
    again = say(ASK, "repeat", "x")
    wrong = say("cancel 13 . confirm ?", "correct", "no")
    end = say("bye", closing=True)
    assert satisfaction(episode(end)) == 1.0  # nothing but the goal applies
    assert satisfaction(episode(good, end), patience=5) == 1.0
    # A question was repeated: (0.5 + 0.15) / (0.5 + 0.2 + 0.15).
    assert satisfaction(episode(good, again, end), patience=5) == pytest.approx(0.65 / 0.85)
    # Patience too is used up: 0.5 / 0.85.
    assert satisfaction(episode(good, again, end), patience=2) == pytest.approx(0.5 / 0.85)
    # All three apply, a correction was ignored: (0.5 + 0.2 + 0.15) / 1.
    assert satisfaction(episode(good, wrong, wrong, end), patience=9) == pytest.approx(0.85)


def test_satisfaction_without_the_goal_by_hand():
    good, again = say(ASK, "inform", "x"), say(ASK, "repeat", "x")
    failed = {"success": False, "progress": 0.8}
    assert satisfaction(episode(call(), **failed)) == pytest.approx(0.24)
    # 0.3 * 0.8 * 0.15 / 0.35.
    unhappy = satisfaction(episode(good, again, **failed), patience=5)
    assert unhappy == pytest.approx(0.24 * 0.15 / 0.35)
    gone = say("bye", "leave", "i have no more time")
    assert satisfaction(episode(gone, end=End.LEFT, **failed)) == 0.2
    assert satisfaction(episode(gone, end=End.LEFT)) == 0.2  # it does not know of its success
    thanks = say("done", "thank", "thanks")
    assert satisfaction(episode(thanks, end=End.LEFT)) == 1.0
    assert satisfaction(episode(thanks, end=End.FAULT)) is None


TURNS = st.lists(
    st.sampled_from(
        [
            say(ASK, "inform", "a@b.c"),
            say(ASK, "repeat", "a@b.c"),
            say("order 13 . confirm ?", "correct", "no"),
            say("it is done", "thank", "thanks"),
            say("you have 9 points", "leave", "bye"),
            call(),
            call("cancel", failed=True, result="error: no order 9", order="9"),
            broken("say"),
        ]
    ),
    min_size=1,
    max_size=12,
)


@given(
    TURNS,
    st.sampled_from([End.CLOSED, End.LEFT, End.HORIZON]),
    st.booleans(),
    st.floats(0, 1),
    st.none() | st.integers(1, 12),
)
def test_ranges(turns, end, success, progress, patience):
    trajectory = episode(*turns, end=end, success=success, progress=progress)
    value = satisfaction(trajectory, patience)
    assert 0 <= value <= 1
    if trajectory.success and not (end is End.LEFT and turns[-1].act == "leave"):
        assert value >= 0.5
    else:
        assert value <= 0.3
    for share in (coherence, changed_calls, ignored_corrections):
        part, of = share(trajectory)
        assert 0 <= part <= of <= len(turns)
    # Judgements look back, never ahead.
    assert judge_turns(episode(*turns[:-1])) == judge_turns(trajectory)[:-1]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(5, 9))))
def test_pooling_counts_each_case_once(pairs):
    whole = pooled(Ratio(*pair) for pair in pairs)
    assert whole == (sum(p for p, _ in pairs), sum(of for _, of in pairs))
    assert (whole.value is None) == (not pairs)
