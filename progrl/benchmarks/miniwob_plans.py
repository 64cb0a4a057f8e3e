"""What solves the pages of MiniWoB++ whose solution can be told from the first look.

It reads what agents read, the instruction and the accessibility tree, and nothing else.
"""

import re
from collections.abc import Callable

from progrl.benchmarks.browser import Seen
from progrl.dialogue.messages import ToolCall
from progrl.errors import EnvironmentFault

Plan = Callable[[str, Seen], list[ToolCall]]
"""All calls, from the instruction and the first look."""


def click(ref: str) -> ToolCall:
    """Click an element."""
    return ToolCall("click", {"ref": ref})


def fill(ref: str, text: str) -> ToolCall:
    """Replace the text of a field."""
    return ToolCall("fill", {"ref": ref, "text": text})


def press(ref: str, *keys: str) -> list[ToolCall]:
    """Press one key after the other."""
    return [ToolCall("press", {"ref": ref, "key": key}) for key in keys]


def _choose(seen: Seen, option: str) -> ToolCall:
    return ToolCall("select_option", {"ref": seen.ref("combobox"), "option": option})


def submit(seen: Seen, name: str = "Submit") -> ToolCall:
    """Click a button."""
    return click(seen.ref("button", name))


def quoted(words: str) -> list[str]:
    """What stands in quotation marks."""
    return re.findall(r'"(.*?)"', words)


def groups(pattern: str, words: str) -> tuple[str, ...]:
    """The groups of a pattern.

    Raises:
        EnvironmentFault: the words are others.
    """
    found = re.search(pattern, words)
    if found is None:
        raise EnvironmentFault(f"the expert does not understand {words[:60]!r}")
    return found.groups()


def places(words: str) -> list[int]:
    """The places that are named, as in 2nd, counted from 0."""
    return [int(number) - 1 for number in re.findall(r"(\d+)(?:st|nd|rd|th)", words)]


def _button(words: str, seen: Seen) -> list[ToolCall]:
    return [click(seen.ref("button", quoted(words)[0]))]


def _buttons(words: str, seen: Seen) -> list[ToolCall]:
    return [click(seen.ref("button", name)) for name in re.findall(r"button ([A-Z]+)", words)]


def _dialog(words: str, seen: Seen) -> list[ToolCall]:
    (name,) = quoted(words)
    return [click(seen.ref("button", "Close" if name == "x" else name))]


def _boxes(words: str, seen: Seen) -> list[ToolCall]:
    (wanted,) = groups(r"Select (.*) and click", words)
    names = wanted.split(", ") if wanted != "nothing" else []
    return [*(click(seen.ref("checkbox", name)) for name in names), submit(seen)]


def _option(words: str, seen: Seen) -> list[ToolCall]:
    return [click(seen.ref("radio", *groups(r"Select (.*) and click", words))), submit(seen)]


def _list(words: str, seen: Seen) -> list[ToolCall]:
    return [_choose(seen, *groups(r"Select (.*) from the list", words)), submit(seen)]


def _list_and_button(words: str, seen: Seen) -> list[ToolCall]:
    return [_choose(seen, *groups(r"Choose (.*) from the", words)), *_button(words, seen)]


def _texts(words: str, seen: Seen) -> list[ToolCall]:
    """As many texts as there are fields, or one text for all of them."""
    fields, texts = seen.refs("textbox"), quoted(words)
    if len(texts) < len(fields):
        texts = texts[:1] * len(fields)
    filled = [fill(ref, text) for ref, text in zip(fields, texts, strict=False)]
    return [*filled, click(seen.ref("button"))]


def _cased(words: str, seen: Seen) -> list[ToolCall]:
    (text,) = quoted(words)
    return _answer(seen, text.upper() if "upper case" in words else text.lower())


def _answer(seen: Seen, text: str) -> list[ToolCall]:
    """Into the last field, and on."""
    return [fill(seen.refs("textbox")[-1], text), submit(seen)]


def _date(words: str, seen: Seen) -> list[ToolCall]:
    month, day, year = groups(r"(\d+)/(\d+)/(\d+)", words)
    return _answer(seen, f"{year}-{month}-{day}")


def _time(words: str, seen: Seen) -> list[ToolCall]:
    return _answer(seen, *groups(r"(\d+:\d+)", words))


def _spinner(words: str, seen: Seen) -> list[ToolCall]:
    return [fill(seen.ref("spinbutton"), *groups(r"Select (\S+) with", words)), submit(seen)]


def _focus(words: str, seen: Seen) -> list[ToolCall]:
    return [click(seen.refs("textbox")[sum(places(words))])]


def _tab(words: str, seen: Seen) -> list[ToolCall]:
    return [click(seen.ref("link", words.removeprefix("Click on ").rstrip(".")))]


def _section(words: str, seen: Seen) -> list[ToolCall]:
    return [click(seen.ref("tab")), submit(seen)]


def _arithmetic(words: str, seen: Seen) -> list[ToolCall]:
    first, sign, second = groups(r"(\d+) (.) (\d+) =", seen.snapshot)
    return _answer(seen, str(_result(int(first), sign, int(second))))


def _algebra(words: str, seen: Seen) -> list[ToolCall]:
    """The one x that solves it; none is over 109 or under -99."""
    first, sign, second, right = groups(r"\b(x|\d+) ([+-]) (x|\d+) = (\d+)", seen.snapshot)

    def solves(x: int) -> bool:
        values = (x if each == "x" else int(each) for each in (first, second))
        return _result(next(values), sign, next(values)) == int(right)

    return _answer(seen, str(next(filter(solves, range(-120, 121)))))


def _result(first: int, sign: str, second: int) -> int:
    return {"+": first + second, "-": first - second, "x": first * second}[sign]


def _table(words: str, seen: Seen) -> list[ToolCall]:
    """The value of the named row, or of the row of each field's label."""
    cells = [each.name for each in seen.elements if each.role == "cell"]
    values = dict(zip(cells[::2], cells[1::2], strict=True))
    asked = re.findall(r"value of (.*) into", words) or [
        each.text.removesuffix(":") for each in seen.elements if each.text.endswith(":")
    ]
    fields = seen.refs("textbox")
    filled = [fill(ref, values[name]) for ref, name in zip(fields, asked, strict=True)]
    return [*filled, submit(seen)]


def _word(words: str, seen: Seen) -> list[ToolCall]:
    """The word at a place in the paragraph; with no place the last one of the area of text."""
    if "last word" in words:
        text = next(each.text for each in seen.elements if each.role == "textbox")
        word = text.split()[-1]
    else:
        text = next(each.text for each in seen.elements if each.role == "paragraph")
        word = text.split()[places(words)[0]]
    return _answer(seen, re.sub(r"[^a-zA-Z]", "", word))


def _letters(words: str, seen: Seen) -> list[ToolCall]:
    return _answer(seen, "".join(e.text for e in seen.elements if len(e.text) == 1))


def _copy(words: str, seen: Seen) -> list[ToolCall]:
    """By the keys, for the tree does not show a space at the end."""
    areas = [each.ref for each in seen.elements if each.role == "textbox" and each.text]
    field = next(each.ref for each in seen.elements if each.role == "textbox" and not each.text)
    area = areas[sum(places(words))]
    return [*press(area, "Control+a", "Control+c"), *press(field, "Control+v"), submit(seen)]


def _scroll(words: str, seen: Seen) -> list[ToolCall]:
    key = "Control+Home" if "to the top" in words else "Control+End"
    return [*press(seen.ref("textbox"), key), submit(seen)]


def _movies(words: str, seen: Seen) -> list[ToolCall]:
    """Labels come in the order of the fields, before or after each."""
    genre, director, year = groups(r"for (.*) movies directed by (.*) from year (\d+)", words)
    values = {"Genre": genre, "Director": director, "Year": year, "Released": year}
    area = seen.snapshot.partition(words)[2]
    labels = re.findall("|".join(values), area)
    fields = zip(seen.refs("textbox"), labels, strict=True)
    ends = {"Submit", "Search", "Go!"}
    last = next(e.ref for e in seen.elements if {e.name, e.text} & ends)
    return [*(fill(ref, values[label]) for ref, label in fields), click(last)]


def _radio_and_text(words: str, seen: Seen) -> list[ToolCall]:
    radio, field = places(words)
    filled = fill(seen.refs("textbox")[field], quoted(words)[0])
    return [click(seen.refs("radio")[radio]), filled, submit(seen)]


def _flight(words: str, seen: Seen) -> list[ToolCall]:
    books = [each for each in seen.elements if each.name.startswith("Book for $")]
    if "cheapest" in words:
        costs = [int(each.name.removeprefix("Book for $")) for each in books]
    else:
        spans = re.findall(r": (\d+)h (\d+)m$", seen.snapshot, re.M)
        costs = [60 * int(hours) + int(minutes) for hours, minutes in spans]
    return [click(books[costs.index(min(costs))].ref)]


def _greatest(words: str, seen: Seen) -> list[ToolCall]:
    cards = [each for each in seen.elements if each.text.isdigit()]
    return [click(max(cards, key=lambda each: int(each.text)).ref), submit(seen)]


def _odd_or_even(words: str, seen: Seen) -> list[ToolCall]:
    numbers = [int(e.text) for e in seen.elements if re.fullmatch(r"-?\d+", e.text)]
    buttons = zip(seen.refs("button", "Odd"), seen.refs("button", "Even"), strict=True)
    pressed = [pair[number % 2 == 0] for number, pair in zip(numbers, buttons, strict=True)]
    return [*map(click, pressed), submit(seen)]


PLANS: dict[str, tuple[int, Plan]] = {
    "click-button": (1, _button),
    "click-button-sequence": (2, _buttons),
    "click-checkboxes": (3, _boxes),
    "click-checkboxes-large": (5, _boxes),
    "click-option": (2, _option),
    "click-tab": (1, _tab),
    "click-test": (1, lambda words, seen: [click(seen.ref("button"))]),
    "click-test-2": (1, _buttons),
    "choose-list": (2, _list),
    "enter-password": (3, _texts),
    "enter-text": (2, _texts),
    "focus-text": (1, _focus),
    "focus-text-2": (1, _focus),
    "login-user": (3, _texts),
    "buy-ticket": (2, _flight),
    "click-checkboxes-transfer": (3, _boxes),
    "click-collapsible": (2, _section),
    "click-collapsible-nodelay": (2, _section),
    "click-dialog": (1, _dialog),
    "click-dialog-2": (1, _dialog),
    "click-test-transfer": (1, _buttons),
    "copy-paste": (4, _copy),
    "copy-paste-2": (4, _copy),
    "enter-date": (2, _date),
    "enter-text-2": (2, _cased),
    "enter-text-dynamic": (2, _texts),
    "enter-time": (2, _time),
    "find-greatest": (2, _greatest),
    "find-word": (3, _word),
    "form-sequence-2": (3, _radio_and_text),
    "form-sequence-3": (2, _list_and_button),
    "multi-layouts": (4, _movies),
    "multi-orderings": (4, _movies),
    "odd-or-even": (4, _odd_or_even),
    "read-table": (3, _table),
    "read-table-2": (4, _table),
    "scroll-text": (3, _word),
    "scroll-text-2": (3, _scroll),
    "simple-algebra": (4, _algebra),
    "simple-arithmetic": (3, _arithmetic),
    "text-transform": (3, _letters),
    "unicode-test": (1, _button),
    "use-spinner": (2, _spinner),
}
"""The pages whose solution can be told from the first look, with their complexity."""
