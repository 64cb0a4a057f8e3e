"""The gym `search`: rewards and ends by hand, and the weights of its search."""

import math

import pytest

from progrl.dialogue.acts import mentions
from progrl.dialogue.tasks import Milestone
from progrl.environments.choices import ChoiceEnvironment
from progrl.environments.gyms.corpus import BOOKS, FIRMS, PEOPLE, TOWNS, bm25, corpus
from progrl.environments.gyms.search import MOST_SEARCHES, Search
from tests.builders import make_task
from tests.environments.gym import do, gym, stream

KNOWN = corpus(5)
BOOK = KNOWN.kinds["book"][0]
AUTHOR = KNOWN.facts[BOOK]["author"]
OTHER = next(name for name in KNOWN.kinds["person"] if name != AUTHOR)
TASK = make_task(
    query=f"who wrote {BOOK} ?",
    goal={"answer": AUTHOR, "kind": "person", "reads": [[BOOK, f"{BOOK} author"]]},
    setup={"corpus": 5},
    milestones=(Milestone("read 0", 0.5), Milestone("solved", 0.5)),
)


def started() -> ChoiceEnvironment:
    environment = gym("search").environment()
    assert isinstance(environment, ChoiceEnvironment)
    environment.reset(TASK)
    return environment


@pytest.mark.parametrize(
    ("choice", "content", "reward", "done"),
    [
        ("answer", AUTHOR, 1.0, True),
        ("answer", f"It was {AUTHOR.title()} .", 1.0, True),
        ("answer", f"{AUTHOR} , born in {KNOWN.facts[AUTHOR]['born']}", 1.0, True),
        ("answer", OTHER, 0.0, False),
        ("answer", f"{AUTHOR} or {OTHER}", 0.0, False),
        ("answer", AUTHOR.split()[0], 0.0, False),
        ("answer", "", 0.0, False),
        ("search", BOOK, 0.0, False),
        ("action", AUTHOR, 0.0, False),
    ],
)
def test_the_table(choice: str, content: str, reward: float, done: bool) -> None:
    environment = started()
    result = do(environment, choice, content)
    assert (result.reward, result.done) == (reward, done)
    assert environment.outcome().success == done


def test_five_searches_and_no_more() -> None:
    environment = started()
    assert not any(do(environment, "search", "town").failed for _ in range(MOST_SEARCHES))
    sixth = do(environment, "search", BOOK)
    assert sixth.failed
    assert sixth.observation == "error: no searches are left"
    assert do(environment, "answer", OTHER).observation == "wrong"
    assert do(environment, "answer", AUTHOR).done


def test_a_search_shows_the_two_best_texts() -> None:
    environment = started()
    result = do(environment, "search", f"{BOOK} author")
    shown = result.observation.split(" ; ")
    assert shown[0] == KNOWN.texts[BOOK]
    assert len(shown) == 2
    assert result.milestones == ("read 0",)
    assert do(environment, "search", f"{BOOK} author").milestones == ()
    assert do(environment, "search", "zzz ?").observation == "nothing found"


def test_bm25_by_hand() -> None:
    weights = bm25({"one": "red fox", "two": "red red fox fox", "three": "blue sea"})
    # Mean length 8/3; "blue" stands once in one text of three, which is shorter than the mean.
    idf = math.log(1 + 2.5 / 1.5)
    assert weights["blue"] == {"three": pytest.approx(idf * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 0.75)))}
    idf = math.log(1 + 1.5 / 2.5)
    assert weights["red"]["two"] == pytest.approx(idf * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 1.5)))
    assert list(weights["red"]) == ["one", "two"]


def test_corpora_hold_no_contradiction() -> None:
    for seed in range(30):
        known = corpus(seed)
        assert len(known.texts) == PEOPLE + TOWNS + FIRMS + BOOKS
        years = known.kinds["year"]
        assert len(set(years)) == len(years)
        for subject, text in known.texts.items():
            assert all(mentions(text, value) for value in known.facts[subject].values())
            noun = "town" if subject in known.kinds["town"] else ""
            assert known.search(f"{subject} {noun}")[0] == subject


def test_each_text_of_a_plan_tells_the_next_and_the_last_the_answer() -> None:
    for task in stream(Search(), 100):
        known = corpus(task.setup["corpus"])
        texts = [known.texts[subject] for subject, _ in task.goal["reads"]]
        assert any(mentions(text, task.goal["answer"]) for text in texts)
        for subject, query in task.goal["reads"]:
            told = [task.query, *texts]
            assert any(mentions(text, subject) for text in told)
            assert subject in known.search(query)
        assert len(texts) == (1, 1, 2, 3, 4)[task.level - 1]
        assert task.expert_turns <= len(texts) + 1
