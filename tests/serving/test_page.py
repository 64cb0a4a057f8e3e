"""The page in a real browser, as people meet it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from progrl.dialogue.trajectories import read_trajectories
from progrl.serving import saved
from tests.serving.chromium import CHROMIUM, Browser, Page, browsing
from tests.serving.house import Client, serving

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]
YOURS = "document.querySelector('#status').innerText === 'Your turn.'"
OVER = "document.querySelector('#verdict')?.innerText"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Client]:
    with serving(tmp_path / "played") as client:
        yield client


def lobby(browser: Browser, house: Client) -> Page:
    page = browser.person()
    page.open(house.address)
    page.until("document.querySelector('#environment')?.options.length")
    return page


def user(browser: Browser, house: Client, level: int = 3) -> Page:
    """Somebody whose turn it is, as the user of a task of that level."""
    page = lobby(browser, house)
    page.choose("#level", str(level))
    page.click("#start button")
    page.until(YOURS)
    return page


def entries(page: Page) -> list[str]:
    return list(page.js("[...document.querySelectorAll('#chat li')].map((each) => each.innerText)"))


def say(page: Page, text: str) -> None:
    """Type it, send it by Enter, and wait for the answer."""
    before = len(entries(page))
    page.fill("#text", text)
    page.enter()
    page.until(f"document.querySelectorAll('#chat li').length > {before + 1} || {OVER}")
    page.until(f"{YOURS} || {OVER}")


def solve(page: Page) -> None:
    """Answer from the brief until the game is over."""
    facts = page.js(
        "[...document.querySelectorAll('#known dt')].map("
        "(each) => `${each.innerText} ${each.nextSibling.innerText}`).join(' and ')"
    )
    while not page.js(f"Boolean({OVER})"):
        say(page, "yes" if "confirm ?" in entries(page)[-1] else facts)


def test_the_user_is_served_rates_saves_and_deletes(browser: Browser, house: Client) -> None:
    page = user(browser, house)
    assert "i want to" in page.text("#wishes")
    assert "get_order(" in page.text("#chat")
    solve(page)
    assert page.text("#verdict") == "Solved"
    assert "reached" in page.text("#milestones") and "not reached" not in page.text("#milestones")
    assert page.js("document.activeElement.id") == "verdict"
    assert not page.js("document.querySelector('#save').checked")
    page.click("#rate input[value='4']")
    page.fill("#words", "quick & <b>polite</b>")
    page.click("#save")
    page.click("#rate button")
    page.until("document.querySelector('#thanks').innerText.includes('saved')")
    (file,) = saved(house.folder)
    (kept,) = read_trajectories(file)
    assert (kept.tags["rating"], kept.tags["words"]) == (4, "quick & <b>polite</b>")
    page.reload()
    page.until("document.querySelector('#thanks').innerText.includes('saved')")
    page.click("#delete")
    page.until("document.querySelector('#thanks').innerText.includes('Nothing')")
    assert list(house.folder.iterdir()) == []
    assert page.problems == []


def test_without_the_tick_nothing_is_saved(browser: Browser, house: Client) -> None:
    page = user(browser, house)
    page.click("#leave")
    page.until(OVER)
    page.click("#rate input[value='1']")
    page.click("#rate button")
    page.until("document.querySelector('#thanks').innerText.includes('Nothing')")
    assert not house.folder.exists()


def test_what_was_saved_is_deleted_from_the_first_page_too(browser: Browser, house: Client) -> None:
    page = user(browser, house)
    page.click("#leave")
    page.until(OVER)
    page.click("#rate input[value='5']")
    page.click("#save")
    page.click("#rate button")
    page.until("document.querySelector('#thanks').innerText.includes('saved')")
    page.open(house.address)
    page.click("#kept-list button")
    page.until("document.querySelector('#kept').hidden")
    assert saved(house.folder) == []


def test_a_reload_goes_on_where_it_was(browser: Browser, house: Client) -> None:
    page = user(browser, house)
    say(page, "one moment")
    before = entries(page)
    page.fill("#text", "half a thought")
    page.reload()
    page.until(YOURS)
    assert entries(page) == before
    assert page.js("document.querySelector('#text').value") == "half a thought"
    solve(page)
    assert page.text("#verdict") == "Solved"


def test_two_people_play_at_once(browser: Browser, house: Client) -> None:
    one, two = user(browser, house), user(browser, house)
    assert one.js("location.pathname") != two.js("location.pathname")
    assert entries(one)[0] != entries(two)[0]
    say(one, "this is the first of us")
    say(two, "and this is the second")
    assert "this is the first of us" in one.text("#chat")
    assert "the second" not in one.text("#chat") and "the first" not in two.text("#chat")
    solve(two)
    assert two.text("#verdict") == "Solved"
    assert one.js(YOURS)
    solve(one)
    assert one.text("#verdict") == "Solved"


def test_the_agent_has_tools_and_a_form_for_each(browser: Browser, house: Client) -> None:
    page = lobby(browser, house)
    page.click("input[value=agent]")
    page.choose("#level", "1")
    assert not page.js("document.querySelector('#opponent').checkVisibility()")
    page.click("#start button")
    page.until(YOURS)
    assert not page.js("document.querySelector('#brief').checkVisibility()")
    page.choose("#tool", "get_order")
    assert page.js("document.querySelector('#arguments input').required")
    page.fill("#argument-order", "11111")
    page.click("#call button")
    page.until("document.querySelectorAll('#chat li').length === 3")
    page.until(YOURS)
    assert "get_order(order=11111)" in page.text("#chat")
    say(page, "what is your name and zip ?")
    page.fill("#text", "bye")
    page.click("#close")
    page.until(OVER)
    assert page.text("#verdict") == "Not solved"
    assert page.problems == []


def test_words_are_never_markup(browser: Browser, house: Client) -> None:
    page = user(browser, house)
    said = "<img src=x onerror='window.hit=1'><script>window.hit=1</script>"
    say(page, said)
    assert said in page.text("#chat")
    assert page.js("document.querySelectorAll('#chat img, #chat script').length") == 0
    assert page.js("window.hit === undefined")


def test_empty_words_are_not_sent_and_a_lost_game_is_told_of(
    browser: Browser, house: Client
) -> None:
    page = user(browser, house)
    before = entries(page)
    page.fill("#text", "   ")
    page.enter()
    assert entries(page) == before and page.js(YOURS)
    page.open(f"{house.address}games/guessed")
    page.until("document.querySelector('#banner').innerText.includes('not here any more')")
    page.until("document.querySelector('#start').checkVisibility()")


@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_a_phone_and_names_what_can_be_filled_in(
    dark: bool, browser: Browser, house: Client
) -> None:
    page = lobby(browser, house)
    page.show(360, 740, dark)
    for role in ("user", "agent"):
        page.click(f"input[value={role}]")
        page.choose("#level", "3")
        page.click("#start button")
        page.until(YOURS)
        assert page.js("document.documentElement.scrollWidth") == 360
        nameless = page.js(
            "[...document.querySelectorAll('input, select, textarea')]"
            ".filter((each) => each.checkVisibility() && !each.labels.length).length"
        )
        assert nameless == 0
        low = page.js(
            "[...document.querySelectorAll('button')].filter((each) => each.checkVisibility()"
            " && each.getBoundingClientRect().height < 44).length"
        )
        assert low == 0
        page.open(house.address)
        page.until("document.querySelector('#environment')?.options.length")
    paper = page.js("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(18, 22, 28)" if dark else "rgb(246, 247, 249)")
