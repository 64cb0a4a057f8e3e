"""What solves the pages of MiniWoB++: plans from the first look, and steps where a page changes.

It reads what agents read, the instruction and the accessibility tree, and nothing else.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from progrl.benchmarks.browser import Seen
from progrl.benchmarks.miniwob_plans import (
    PLANS,
    click,
    fill,
    groups,
    places,
    quoted,
    submit,
)
from progrl.dialogue.messages import ToolCall
from progrl.errors import EnvironmentFault

Step = Callable[[str, Seen, Sequence[ToolCall]], ToolCall]
"""The next call, from the instruction, the last look and the calls so far."""


def _calendar(words: str, seen: Seen, made: Sequence[ToolCall]) -> ToolCall:
    """Open the calendar, turn to the month, take the day."""
    (day,) = groups(r"(\d+/\d+/\d+)", words)
    wanted = datetime.strptime(day, "%m/%d/%Y")
    field = next(each for each in seen.elements if each.role == "textbox")
    if field.text:
        return submit(seen)
    shown = re.search(r": ([A-Z][a-z]+ \d{4})$", seen.snapshot, re.M)
    if shown is None:
        return click(field.ref)
    month = datetime.strptime(shown[1], "%B %Y")
    if (month.year, month.month) == (wanted.year, wanted.month):
        return click(seen.ref("link", str(wanted.day)))
    return click(seen.ref("generic", "Prev" if wanted < month else "Next"))


def _guess(words: str, seen: Seen, made: Sequence[ToolCall]) -> ToolCall:
    """Enter a number, submit it; begin in the middle, and go the way that the page says."""
    if made and made[-1].name == "fill":
        return submit(seen)
    told = re.search(r"The number is (higher|lower) than (\d)", seen.snapshot)
    step = {"higher": 1, "lower": -1}[told[1]] if told else 0
    return fill(seen.ref("spinbutton"), str((int(told[2]) if told else 4) + step))


def _generate(words: str, seen: Seen, made: Sequence[ToolCall]) -> ToolCall:
    """Ask for numbers until one is as it should be."""
    shown = next((int(e.text) for e in seen.elements if e.text.isdigit()), None)
    bound = re.search(r"(less|greater) than (\d+)", words)
    if shown is None:
        right = False
    elif bound is None:
        right = shown % 2 == ("odd" in words)
    else:
        right = shown < int(bound[2]) if bound[1] == "less" else shown > int(bound[2])
    return submit(seen, "Submit" if right else "Generate")


def _interrupted(words: str, seen: Seen, made: Sequence[ToolCall]) -> ToolCall:
    """Fill both fields; send away what comes between."""
    if seen.refs("button", "Cancel"):
        return submit(seen, "Cancel")
    fields = [each for each in seen.elements if each.role == "textbox"]
    for field, text in zip(fields, quoted(words), strict=True):
        if field.text != text:
            return fill(field.ref, text)
    return submit(seen, "OK")


def _contact(words: str, seen: Seen, made: Sequence[ToolCall]) -> ToolCall:
    """Leaf through the book to the name, then click what is asked for."""
    name, kind = groups(r"Find (.*) in the contact book and click on their (\w+)", words)
    if not seen.refs("heading", name):
        return click(seen.ref("link", ">"))
    (ref,) = groups(rf'{kind.title()}:"\n\s*- generic \[ref=(e\d+)\]', seen.snapshot)
    return click(ref)


def _search(words: str, seen: Seen, made: Sequence[ToolCall]) -> ToolCall:
    """Search, turn to the page of the place, take the result; a page has three."""
    page, place = divmod(places(words)[0], 3)
    if len(made) < 2:
        return [fill(seen.ref("textbox"), quoted(words)[0]), submit(seen, "Search")][len(made)]
    if len(made) == 2 and page:
        return click(seen.ref("link", str(page + 1)))
    return click(seen.refs("link")[place])


def _completed(words: str, seen: Seen, made: Sequence[ToolCall]) -> ToolCall:
    """Type the beginning, and take an item with the right end of those that are then shown."""
    begin, *end = quoted(words)
    match len(made):
        case 0:
            return fill(seen.ref("textbox"), begin)
        case 1:
            items = (e for e in seen.elements if e.role == "generic" and e.text.startswith(begin))
            return click(next(each.ref for each in items if each.text.endswith("".join(end))))
    return submit(seen)


STEPS: dict[str, tuple[int, int, Step]] = {
    "choose-date": (4, 15, _calendar),
    "choose-date-easy": (3, 3, _calendar),
    "choose-date-medium": (3, 4, _calendar),
    "choose-date-nodelay": (4, 15, _calendar),
    "generate-number": (3, 12, _generate),
    "guess-number": (3, 12, _guess),
    "login-user-popup": (4, 6, _interrupted),
    "phone-book": (3, 5, _contact),
    "search-engine": (3, 4, _search),
    "use-autocomplete-nodelay": (3, 3, _completed),
}
"""The pages that the expert looks at again after every call, with their complexity and the calls
that most episodes need at most."""
PAGES: tuple[str, ...] = (*PLANS, *STEPS)
"""The pages that the expert solves."""


def complexity(page: str) -> int:
    """From 1 to 5."""
    return PLANS[page][0] if page in PLANS else STEPS[page][0]


def calls(page: str, query: str) -> int:
    """How many calls the expert needs, or most likely at most where the page changes.

    Args:
        query: the task's opening: a line of instruction, then the page.

    Raises:
        EnvironmentFault: what should be there is not.
    """
    return len(_plan(page, query)) if page in PLANS else STEPS[page][1]


def next_call(page: str, query: str, seen: str, made: Sequence[ToolCall]) -> ToolCall | None:
    """The next call, None after the last.

    Args:
        query: the task's opening: a line of instruction, then the page.
        seen: the page at the last look.
        made: the calls so far.

    Raises:
        EnvironmentFault: what should be there is not.
    """
    if page in PLANS:
        return next(iter(_plan(page, query)[len(made) :]), None)
    with _read(page):
        return STEPS[page][2](query.partition("\n")[0], Seen(seen), made)


def _plan(page: str, query: str) -> list[ToolCall]:
    words, _, snapshot = query.partition("\n")
    with _read(page):
        return PLANS[page][1](words, Seen(snapshot))


@contextlib.contextmanager
def _read(page: str) -> Iterator[None]:
    """A page that is not as the solvers know it is a fault."""
    try:
        yield
    except (LookupError, StopIteration, ValueError) as error:
        raise EnvironmentFault(f"the expert cannot read {page}: {error!r}") from error
