"""Riddles: odd scenes, and what may be behind them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from progrl.environments.gyms.recognise import Judge, Subject, about

# By part: what may be so, the sentence that says it, and further phrases that do.
_PARTS = {
    "who": """
diver | the stranger is a diver | dives , diving , under water , scuba
actor | the stranger is an actor | acts in , actress , plays a role , film star , movies , movie
nurse | the stranger is a nurse | nurses , cares for the sick , medical staff , helps doctors ,
  patients
thief | the stranger is a thief | steals , thieves , robber , burglar , steal , stolen
spy | the stranger is a spy | spies , undercover , espionage , foreign power
baker | the stranger is a baker | bakes , baking , makes bread , bake , dough , flour
pilot | the stranger is a pilot | flies a plane , flies planes , aviator , cockpit , aircraft
clown | the stranger is a clown | clowns , red nose , jester , make people laugh , makes people
  laugh
judge | the stranger is a judge | judges , in court , magistrate , black robe , verdict
gardener | the stranger is a gardener | gardening , tends plants , grows flowers , tend plants ,
  hedges
""",
    "where": """
ship | it happens on a ship | boat , on board , vessel , at sea
theatre | it happens in a theatre | on a stage , on stage , playhouse , in front of an audience
hospital | it happens in a hospital | clinic , sickroom , ward
zoo | it happens in a zoo | animal park , among cages , animals behind bars , monkeys , lions
museum | it happens in a museum | gallery , exhibition , exhibits
prison | it happens in a prison | jail , in a cell , in jail , convicts , convict
lighthouse | it happens in a lighthouse | light tower , beacon , tower on the coast
school | it happens in a school | classroom , pupils , among lessons , teachers , teacher
castle | it happens in a castle | fortress , palace , behind a moat
mine | it happens in a mine | shaft , underground , deep in the earth , coal
""",
    "before": """
bet | a bet had been lost before | wager , gambled , betting
train | a train had been missed before | missed the train , too late at the station , the train
  left , railway
lottery | the lottery had been won before | won a fortune , jackpot , winning ticket , lucky
  numbers
promise | a promise had been broken before | broke a promise , broken word , did not keep a word
  , keep their word , keep his word , keep her word , sworn
letter | a letter had been found before | an envelope , found a note , found mail , mail
rumour | a rumour had been heard before | gossip , rumor , hearsay , people whispered , from
  mouth to mouth
birthday | a birthday had been forgotten before | forgot the birthday , anniversary , forgot a
  party
ghost | a ghost had been seen before | haunted , saw a spirit , a phantom , spectre , something
  dead , the dead
nightmare | there had been a nightmare before | bad dream , dreamt , dreamed
warning | there had been a warning before | was warned , had been warned , an alert , cautioned
  , warned
""",
    "why": """
child | it is done to save a child | rescue a child , saves a kid , a little boy , a little girl
  , a baby
prize | it is done to win a prize | win an award , a trophy , a medal , a contest , award ,
  reward
treasure | it is done to hide a treasure | hide gold , hide jewels , bury gold , hide something
  valuable , diamonds , jewels , gold
friend | it is done to wake a friend | wake somebody , wakes a mate , out of sleep , wake up ,
  out of bed , a mate
rival | it is done to fool a rival | deceive , trick an enemy , mislead , fool a competitor ,
  opponent , competitor , enemy
secret | it is done to keep a secret | hush , conceal the truth , nobody may know , cover up ,
  know the truth , hushed
machine | it is done to test a machine | try a device , test an engine , an invention , a robot
  , apparatus , device
neighbour | it is done to thank a neighbour | gratitude , thank someone , thankful , pay back a
  kindness , kindness , grateful
bird | it is done to scare a bird | frighten a bird , chase birds , scare crows , scare pigeons
  , crows , seagull , pigeons
record | it is done to break a record | world record , the fastest ever , longest ever , best
  ever
""",
}
PARTS: Mapping[str, str] = {
    "who": "who the stranger is",
    "where": "where it happens",
    "before": "what had happened before",
    "why": "what it is done for",
}
"""What a riddle leaves open, in words."""

_SCENES = """
a stranger paints a door red and laughs
a stranger eats soup with closed eyes
somebody walks backwards all day long
a stranger counts the stairs and then runs away
somebody throws a new hat out of the window
a stranger sings at midnight , and all the others clap
somebody ties nine ropes to one chair
a stranger pours salt on the floor and leaves content
somebody wears two coats in the summer heat
a stranger breaks a clock and says thanks
somebody whispers into an empty bucket
a stranger buys forty umbrellas on a sunny day
somebody carries a ladder to bed
a stranger writes one word on every wall
somebody turns off all the lamps and dances
a stranger drinks ink and smiles
somebody puts a mirror into a suitcase
a stranger weeps when the music stops
somebody bows to a broken statue
a stranger rings a bell and lies down
"""
SCENES: Sequence[str] = tuple(_SCENES.strip().splitlines())


@dataclass(frozen=True, slots=True)
class Answer:
    """What may be so in one part of a riddle."""

    part: str
    statement: str


_ROWS = [
    [part, *(cell.strip() for cell in row.split("|"))]
    for part, rows in _PARTS.items()
    for row in re.sub(r"\n +", " ", rows).strip().splitlines()
]
ANSWERS: Mapping[str, Answer] = {name: Answer(part, said) for part, name, said, _ in _ROWS}
SUBJECTS: Mapping[str, Subject] = {
    name: Subject(name, (name, name + "s", *re.split(r" , ", cues)), said)
    for _, name, said, cues in _ROWS
}
"""What questions and explanations may be about."""
_ALL = tuple(SUBJECTS.values())


@lru_cache(maxsize=65536)
def _named(text: str) -> tuple[str, ...]:
    """The answers that a cue in the text names."""
    return tuple(about(text, _ALL))


def answers_in(text: str, judge: Judge | None = None) -> dict[str, set[str]]:
    """By part the answers that a text names, by rule or as the judge finds them."""
    named = about(text, _ALL, judge) if judge is not None else _named(text)
    found: dict[str, set[str]] = {}
    for name in named:
        found.setdefault(ANSWERS[name].part, set()).add(name)
    return found
