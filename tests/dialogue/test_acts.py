import pytest

from progrl.dialogue.acts import affirms, asks, asks_confirmation, offers, promises, reports


@pytest.mark.parametrize(
    ("text", "agrees"),
    [
        ("yes", True),
        ("Yes, please.", True),
        ("ok , go ahead", True),
        ("please do", True),
        ("that's right", True),
        ("please do not", False),
        ("please don't", False),
        ("sure not", False),
        ("no , that is right", False),
        ("yesterday", False),
        ("i said yes", False),
        ("", False),
    ],
)
def test_who_agrees(text: str, agrees: bool) -> None:
    assert affirms(text) == agrees


def test_what_words_do() -> None:
    assert asks_confirmation("cancel order 12 . Confirm ?")
    assert not asks_confirmation("order 12 is cancelled")
    assert asks("which order")
    assert not asks("order 12 is here")
    assert offers("How can I help you?")
    assert offers("it is done . anything else ?")
    assert not offers("what is your zip ?")
    assert promises("one moment , i will look")
    assert not promises("it is done")
    assert reports("all is done now")
    assert not reports("i look")
