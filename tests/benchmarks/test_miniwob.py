"""MiniWoB++: the expert solves its pages, mistakes do not, episodes repeat."""

from itertools import islice

import pytest

from progrl.benchmarks.browser import Seen
from progrl.benchmarks.miniwob_plans import PLANS
from progrl.benchmarks.miniwob_solvers import PAGES, STEPS, calls, complexity, next_call
from progrl.dialogue.messages import Say, ToolCall
from progrl.errors import EnvironmentFault
from tests.benchmarks.packages import opened


def test_what_the_expert_reads() -> None:
    seen = Seen(
        "- generic [ref=e1]:\n"
        '  - checkbox "a b" [checked] [ref=e2]\n'
        "  - 'link \"Tab #1\" [ref=e3] [cursor=pointer]':\n"
        "  - textbox [active] [ref=e4]: text\n"
        '  - generic [ref=e5] [cursor=pointer]: "-7"\n'
        '  - option "no ref"\n'
    )
    assert seen.elements == [
        ("generic", "", "e1", ""),
        ("checkbox", "a b", "e2", ""),
        ("link", "Tab #1", "e3", ""),
        ("textbox", "", "e4", "text"),
        ("generic", "", "e5", "-7"),
    ]


FIELDS = '- textbox [ref=e1]\n- textbox [ref=e2]\n- button "Submit" [ref=e3]'
MOVIE = "Search for crime movies directed by Lee from year 1990."
SOLVED = [
    ("enter-password", f'Enter the password "x" into both fields\n{FIELDS}', ["x", "x", "e3"]),
    ("focus-text-2", f"Focus into the 2nd input textbox.\n{FIELDS}", ["e2"]),
    ("click-checkboxes", f"Select nothing and click Submit.\n{FIELDS}", ["e3"]),
    ("click-dialog-2", 'The button "x".\n- button "Close" [ref=e1]', ["e1"]),
    ("enter-text-2", f'Type "aB" in all lower case letters.\n{FIELDS}', ["ab", "e3"]),
    ("enter-date", f"Enter 02/03/2015 as the date.\n{FIELDS}", ["2015-02-03", "e3"]),
    ("simple-arithmetic", f"Solve.\n- generic [ref=e9]: 3 x 4 =\n{FIELDS}", ["12", "e3"]),
    ("simple-algebra", f"Solve for x.\n- generic [ref=e9]: 3 - x = 10\n{FIELDS}", ["-7", "e3"]),
    ("find-word", f"Find the 2nd word\n- paragraph [ref=e9]: A bc. De\n{FIELDS}", ["bc", "e3"]),
    ("scroll-text", "The last word.\n- textbox [ref=e9]: A bc.\n" + FIELDS, ["bc", "e3"]),
    (
        "read-table",
        "Enter the value of Year into the text field\n"
        '- cell "Name" [ref=e8]\n- cell "Lee" [ref=e9]\n- cell "Year" [ref=e6]\n'
        '- cell "1990" [ref=e7]\n- textbox [ref=e1]\n- button "Submit" [ref=e3]',
        ["1990", "e3"],
    ),
    (
        "multi-layouts",
        f"{MOVIE}\n- generic [ref=e7]: {MOVIE}\n- text: Released Date\n- textbox [ref=e1]\n"
        "- text: Genre\n- textbox [ref=e2]\n- text: Director\n- textbox [ref=e3]\n"
        '- button "Go!" [ref=e4]',
        ["1990", "crime", "Lee", "e4"],
    ),
    (
        "buy-ticket",
        "Buy the ticket with the shortest duration.\n- generic [ref=e1]: 10h 2m\n"
        '- button "Book for $5" [ref=e2]\n- generic [ref=e3]: 9h 58m\n'
        '- button "Book for $9" [ref=e4]',
        ["e4"],
    ),
    (
        "odd-or-even",
        'Mark.\n- button "Odd" [ref=e1]\n- generic [ref=e2]: "-5"\n- button "Even" [ref=e3]\n'
        '- button "Submit" [ref=e4]',
        ["e1", "e4"],
    ),
]
"""Pages, openings, and of each call what is typed or else the element."""


@pytest.mark.parametrize(("page", "query", "wanted"), SOLVED, ids=lambda value: str(value)[:20])
def test_plans(page: str, query: str, wanted: list[str]) -> None:
    made: list[ToolCall] = []
    while call := next_call(page, query, query, made):
        made.append(call)
    assert [call.arguments.get("text", call.arguments["ref"]) for call in made] == wanted
    assert calls(page, query) == len(wanted)


GUESS = '\n- spinbutton [ref=e1]\n- button "Submit" [ref=e2]'
NUMBER = '\n- generic [ref=e1]: "{}"\n- button "Generate" [ref=e2]\n- button "Submit" [ref=e3]'
DAYS = '- textbox [ref=e1]\n- generic "Prev" [ref=e2]\n- generic [ref=e3]: {}\n- link "5" [ref=e4]'
FIND = "Find {} in the contact book and click on their email."
BOOK = '- heading "{}" [ref=e1]\n- text: "Email:"\n- generic [ref=e2]: a@b.c\n- link ">" [ref=e3]'
LIST = "- textbox [ref=e1]: Sa\n- generic [ref=e2]: Samoa\n- generic [ref=e3]: San Marino\n"


@pytest.mark.parametrize(
    ("page", "words", "seen", "wanted"),
    [
        ("guess-number", "Guess.", f"Waiting{GUESS}", "4"),
        ("guess-number", "Guess.", f"The number is higher than 4.{GUESS}", "5"),
        ("guess-number", "Guess.", f"The number is lower than 4.{GUESS}", "3"),
        ("generate-number", "Generate an odd number.", NUMBER.format("-"), "e2"),
        ("generate-number", "Generate an odd number.", NUMBER.format(4), "e2"),
        ("generate-number", "Generate an even number.", NUMBER.format(4), "e3"),
        ("generate-number", "Generate a number less than 4.", NUMBER.format(4), "e2"),
        ("generate-number", "Generate a number greater than 4.", NUMBER.format(5), "e3"),
        ("choose-date", "Select 11/05/2016.", "- textbox [ref=e1]", "e1"),
        ("choose-date", "Select 11/05/2016.", DAYS.format("December 2016"), "e2"),
        ("choose-date", "Select 11/05/2016.", DAYS.format("November 2016"), "e4"),
        ("phone-book", FIND.format("Ann"), BOOK.format("Bo"), "e3"),
        ("phone-book", FIND.format("Bo"), BOOK.format("Bo"), "e2"),
    ],
)
def test_steps(page: str, words: str, seen: str, wanted: str) -> None:
    call = next_call(page, f"{words}\n", seen, [])
    assert call is not None
    assert call.arguments.get("text", call.arguments["ref"]) == wanted


def test_an_item_that_fits_both_ends_is_taken_of_those_that_are_shown() -> None:
    page, query = "use-autocomplete-nodelay", 'Starts with "Sa" and ends with "ino".\n'
    typed = next_call(page, query, LIST, [])
    assert typed == ToolCall("fill", {"ref": "e1", "text": "Sa"})
    assert next_call(page, query, LIST, [typed]) == ToolCall("click", {"ref": "e3"})
    with pytest.raises(EnvironmentFault, match="cannot read use-autocomplete-nodelay"):
        next_call(page, 'Starts with "Sa" and ends with "x".\n', LIST, [typed])


def test_each_page_has_one_solver_and_a_complexity() -> None:
    assert not PLANS.keys() & STEPS.keys()
    assert {complexity(page) for page in PAGES} <= set(range(1, 6))


@pytest.mark.slow
def test_a_wrong_button_loses_and_nothing_comes_after() -> None:
    adapter = opened("miniwob")
    task = next(task for task in adapter.tasks("test", 0) if task.family == "click-test-2")
    game = adapter.environment()
    game.reset(task)
    call = next_call(task.family, task.query, task.query, [])
    assert call is not None
    right = call.arguments["ref"]
    wrong = next(ref for ref in Seen(task.query).refs("button") if ref != right)
    assert not game.step(Say("hello")).done
    assert game.step(ToolCall("click", {"ref": "e999"})).failed
    result = game.step(ToolCall("click", {"ref": wrong}))
    assert result.done
    assert not game.outcome().success
    assert game.step(ToolCall("click", {"ref": right})).failed
    assert not game.outcome().success


@pytest.mark.slow
def test_openings_repeat_and_splits_share_no_seed() -> None:
    adapter = opened("miniwob")
    pages = 14
    first = list(islice(adapter.tasks("test", 0), pages))
    assert [task.family for task in first] == list(PAGES[:pages])
    assert list(islice(adapter.tasks("test", 1), pages)) == first
    seeds = {
        (task.setup["page"], task.setup["seed"])
        for split in ("test", "validation", "train")
        for task in islice(adapter.tasks(split, 0), pages)
    }
    assert len(seeds) == 3 * pages
