from random import Random

import pytest

from progrl.dialogue.users import GoalChange
from progrl.users.contracts import Profile
from progrl.users.decisions import Move, Talk, decide
from tests.users.desk import (
    ADDRESS,
    CANCEL,
    EMAIL,
    ORDER,
    PLAIN,
    POINTS,
    QUERY,
    REDIRECT,
    SECOND,
    ZIP,
    conversation,
    view,
)

BOTH = view(CANCEL, REDIRECT)
ASKS_BACK = Profile("asks back", 20, 0.0, 0.0, 0.0, 0.0, 0.0)
DOUBTS = Profile("doubts", 20, 1.0, 0.0, 0.0, 1.0, 0.0)
TELLS_MORE = Profile("tells more", 20, 1.0, 0.0, 1.0, 0.0, 0.0)
CONFIRM = "cancel order 73933 . confirm ?"


def move(*texts: str, seen=BOTH, profile: Profile = PLAIN) -> Move:  # type: ignore[no-untyped-def]
    return decide(Talk.of(conversation(*texts), seen), profile, Random(1))


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        ("what is your email ?", (EMAIL,)),
        ("i need your email", (EMAIL,)),
        ("what is the order to redirect ?", (SECOND,)),
        ("which order to redirect ?", (SECOND,)),
        ("which order ?", (SECOND,)),  # the other one is told already
        ("your email and new address ?", (EMAIL, ADDRESS)),
    ],
)
def test_it_tells_the_facts_it_is_asked_for(words: str, facts: object) -> None:
    told = move(words)
    assert told.facts == facts
    assert told.kind == ("inform" if len(told.facts) == 1 else "several")


def test_it_says_again_what_it_has_told() -> None:
    assert move("what is your zip ?") == Move("repeat", (ZIP,))
    again = move("your email ?", "it is ana12@mail.com", "your email , please ?")
    assert again == Move("repeat", (EMAIL,))


def test_what_it_is_not_asked_for_it_keeps() -> None:
    assert move("i have sent it to your email").facts == ()
    assert move("what is your shoe size ?") == Move("unknown")


def test_an_expert_tells_one_thing_more() -> None:
    told = move("what is your email ?", profile=TELLS_MORE)
    assert told == Move("several", (EMAIL, SECOND))


def test_it_asks_back_once_a_fact() -> None:
    email = "what is your email ?"
    assert move(email, profile=ASKS_BACK) == Move("clarify", (EMAIL,))
    assert move(email, "why ?", "tell me your email", profile=ASKS_BACK).kind == "inform"
    later = move(email, "why ?", email, "ana12@mail.com", "new address ?", profile=ASKS_BACK)
    assert later == Move("clarify", (ADDRESS,))


def test_it_confirms_what_it_wants_and_nothing_else() -> None:
    assert move(CONFIRM) == Move("confirm")
    assert move("redirect order 62150 to 52 pine . confirm ?") == Move("confirm")
    assert move("return order 73933 . confirm ?") == Move("correct", wish=CANCEL.text)
    assert move("cancel order 73934 . confirm ?") == Move("amend", (ORDER,))


def test_a_correction_tells_nothing_that_was_not_told() -> None:
    words = "redirect order 62150 to 1 oak . confirm ?"
    assert move(words) == Move("correct", wish=REDIRECT.text)
    told = ("new address ?", "it is 52 pine", words)
    assert move(*told) == Move("amend", (ADDRESS,))


def test_it_challenges_a_request_once() -> None:
    assert move(CONFIRM, profile=DOUBTS) == Move("challenge")
    assert move(CONFIRM, "are you sure ?", CONFIRM, profile=DOUBTS) == Move("confirm")
    other = "redirect order 62150 to 52 pine . confirm ?"
    assert move(CONFIRM, "yes", other, profile=DOUBTS) == Move("challenge")


def test_a_request_that_is_a_question_for_a_fact_is_answered() -> None:
    assert move("may i have your email to proceed ?") == Move("inform", (EMAIL,))


def test_where_nothing_is_to_be_agreed_to_it_says_what_it_wants() -> None:
    asked = move("cancel order 1 . confirm ?", seen=view(POINTS))
    assert asked == Move("restate", wish=POINTS.text)
    assert move("shall i do it ?", seen=view()) == Move("restate", wish=QUERY)


def test_it_thanks_and_leaves_when_all_is_met() -> None:
    seen = view(POINTS)
    assert move("you have 104 points .", seen=seen) == Move("thank", leaves=True)
    assert move("you have 99 points .", seen=seen) == Move("still", wish=POINTS.text)
    assert move("one moment , 104 points so far", seen=seen) == Move("wait")
    after = ("one moment , 104 points so far", "i wait", "is that all ?")
    assert move(*after, seen=seen) == Move("thank", leaves=True)


def test_an_agreement_alone_meets_no_wish() -> None:
    seen = view(CANCEL)
    assert move(CONFIRM, "yes", "one moment , i will do it", seen=seen) == Move("wait")
    assert move(CONFIRM, "yes", "hello", seen=seen) == Move("still", wish=CANCEL.text)
    assert move(CONFIRM, "no", "order 73933 is gone", seen=seen).kind == "still"
    early = ("one moment , i cancel order 73933", "i wait", "hello")
    assert move(CONFIRM, "yes", *early, seen=seen) == Move("still", wish=CANCEL.text)
    for words in ("it is done", "order 73933 is gone", "i did cancel it . anything else ?"):
        assert move(CONFIRM, "yes", words, seen=seen) == Move("thank", leaves=True)


def test_what_is_left_it_asks_for() -> None:
    assert move(CONFIRM, "yes", "it is done") == Move("more", wish=REDIRECT.text)
    assert move("how can i help you ?") == Move("want", wish=CANCEL.text)
    assert move("the weather is nice") == Move("still", wish=CANCEL.text)
    assert move(" ...") == Move("confused")
    assert move("i will look") == Move("wait")


def test_a_statement_is_doubted_once() -> None:
    seen, words = view(POINTS), "you have 104 points"
    assert move(words, seen=seen, profile=DOUBTS) == Move("doubt")
    again = move(words, "are you sure ?", words, seen=seen, profile=DOUBTS)
    assert again == Move("thank", leaves=True)


def test_without_a_wish_it_knows_of_it_never_leaves_satisfied() -> None:
    for words in ("a person will help you", "it is done", "anything else ?"):
        assert not move(words, seen=view()).leaves


def test_patience_ends() -> None:
    short = Profile("short", 2, 1.0, 0.0, 0.0, 0.0, 0.0)
    talk = ["new address ?", "a", "your email ?", "b", "which order to redirect ?"]
    assert move(*talk[:3], profile=short).kind == "inform"
    assert move(*talk, profile=short) == Move("leave", leaves=True)


def test_saying_the_same_three_times_ends_it() -> None:
    words = "what is your email ?"
    assert move(words, "x", words).kind == "inform"
    assert move(words, "x", words, "y", "What is your  email ?") == Move("leave", leaves=True)
    assert move(words, "x", words, "y", "new address ?", "z", words).kind == "inform"


def test_after_a_change_the_new_goal_counts() -> None:
    new = view(REDIRECT, facts=(EMAIL, ZIP, SECOND, ADDRESS))
    seen = view(CANCEL, change=GoalChange(1, "i changed my mind", new))
    first = Talk.of(conversation("hello"), seen)
    assert (first.view.wishes, first.settled) == ((CANCEL,), False)
    later = ("hello", "i changed my mind", CONFIRM)
    assert move(*later, seen=seen) == Move("correct", wish=REDIRECT.text)


def test_it_stays_for_a_change_that_is_to_come() -> None:
    seen = view(POINTS, change=GoalChange(3, "i changed my mind", view(CANCEL)))
    assert move("you have 104 points", seen=seen) == Move("wait")
