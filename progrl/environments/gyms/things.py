"""Things that can be guessed, and what can be asked about them."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from progrl.dialogue.acts import mentions
from progrl.environments.gyms.recognise import Judge, Subject, about

# A trait, the question that asks for it, and further phrases that do.
_TRAITS = """
alive       | is it alive ?                 | living thing , living being
animal      | is it an animal ?             | creature , beast
plant       | is it a plant ?               | tree or flower , a flower , a bush
bird        | is it a bird ?                | feathers , wings and a beak , beak
insect      | is it an insect ?             | six legs , a bug
legs        | does it have four legs ?      | four feet , all fours
fur         | does it have fur ?            | furry , hairy , covered with hair
flies       | can it fly ?                  | flies , flying , in the air , take off
swims       | can it swim ?                 | swims , swimming
hunts       | does it eat meat ?            | eats meat , hunt , hunts , a hunter , kill other
climbs      | can it climb ?                | climbs , climbing
pet         | is it kept as a pet ?         | a pet , pets , in people 's homes , cuddle
farm        | does it live on a farm ?      | farms , on farms , stable or barn , stable , barn
milk        | has it to do with milk ?      | gives milk , made of milk , dairy
sea         | does it live in the sea ?     | ocean , in salt water
night       | is it awake at night ?        | nocturnal , by night , after dark
food        | is it food ?                  | eat it , edible , be eaten
sweet       | does it taste sweet ?         | sugary , a dessert , sugar
fruit       | is it a fruit ?               | fruits , picked from
soil        | does it grow in the soil ?    | underground , a root , dug out
baked       | is it baked ?                 | from a bakery , made of flour
large       | is it bigger than a person ?  | large , big , huge , heavier than
small       | does it fit in a pocket ?     | small , tiny , little , in my hand
metal       | is it made of metal ?         | metallic , steel , iron , magnet
wood        | is it made of wood ?          | wooden
glass       | is it made of glass ?         | transparent , see through
paper       | is it made of paper ?         | printed , tear it
electric    | does it need electricity ?    | electric , a plug , a battery
wheels      | does it have wheels ?         | rolls on wheels , tyres
vehicle     | do people travel in it ?      | vehicle , ride , transport , passengers
tool        | is it a tool ?                | tools , for repairs , craftsman , workshop
music       | does it make music ?          | musical , an instrument , melody
strings     | does it have strings ?        | string , pluck
kitchen     | is it found in a kitchen ?    | kitchen , used for cooking , chef
worn        | do people wear it ?           | worn , clothes , clothing , put it on
pair        | does it come in pairs ?       | pair , two of them
furniture   | is it furniture ?             | piece of furniture , living room
soft        | is it soft ?                  | fluffy , made of cloth
round       | is it round ?                 | a circle , a sphere
sharp       | is it sharp ?                 | cut things , prick , thorns
hot         | does it get hot ?             | heat , hot , warm
light       | does it give light ?          | shines , bright , glows , glow
sky         | is it in the sky ?            | up in the sky , above us
yellow      | is it yellow ?                | of yellow colour
red         | is it red ?                   | of red colour , colour of blood
toy         | do people play with it ?      | toy , a game
"""

_THINGS = """
dog: alive animal legs fur hunts pet           | cat: alive animal legs fur hunts pet climbs
horse: alive animal legs fur farm large vehicle| cow: alive animal legs fur farm large milk
pig: alive animal legs farm                    | sheep: alive animal legs fur farm soft
goat: alive animal legs fur farm milk climbs   | rabbit: alive animal legs fur pet soft
hamster: alive animal legs fur pet small       | lion: alive animal legs fur hunts large
tiger: alive animal legs fur hunts large climbs swims
wolf: alive animal legs fur hunts              | fox: alive animal legs fur hunts red night
elephant: alive animal legs large              | monkey: alive animal fur climbs
frog: alive animal legs swims small            | snake: alive animal hunts
whale: alive animal swims sea large            | shark: alive animal swims sea large hunts
dolphin: alive animal swims sea hunts          | crab: alive animal sea small red
penguin: alive animal bird swims sea hunts     | duck: alive animal bird flies swims farm
chicken: alive animal bird farm                | eagle: alive animal bird flies hunts
owl: alive animal bird flies hunts night       | parrot: alive animal bird flies pet
bat: alive animal fur flies night              | bee: alive animal insect flies small yellow
butterfly: alive animal insect flies small     | ant: alive animal insect small climbs
oak: alive plant wood large                    | rose: alive plant sharp red
cactus: alive plant sharp                      | sunflower: alive plant yellow
grass: alive plant soft                        | apple: food sweet fruit round red
banana: food sweet fruit yellow                | lemon: food fruit yellow
cherry: food sweet fruit round red small       | grape: food sweet fruit round small
pear: food sweet fruit                         | tomato: food round red
carrot: food soil sweet                        | potato: food soil
onion: food soil round                         | bread: food baked
cake: food baked sweet                         | biscuit: food baked sweet small
cheese: food milk                              | honey: food sweet
pizza: food baked round hot                    | car: metal wheels vehicle hot
bicycle: metal wheels vehicle                  | train: metal wheels vehicle large electric
bus: metal wheels vehicle large                | plane: metal wheels vehicle large flies sky
balloon: flies round toy                       | rowboat: wood vehicle
hammer: metal tool                             | saw: metal tool sharp
drill: metal tool electric                     | ladder: wood tool large climbs
knife: metal kitchen sharp                     | spoon: metal kitchen
pan: metal kitchen round hot                   | kettle: metal kitchen electric hot
kite: toy flies sky paper                      | fridge: metal kitchen electric large
lamp: electric light glass                     | candle: light hot
mirror: glass                                  | bottle: glass kitchen
piano: wood music strings large                | guitar: wood music strings
flute: metal music                             | drum: music round
bell: metal music round                        | radio: music electric
shirt: worn soft                               | shoe: worn pair
sock: worn pair soft                           | coat: worn soft hot
helmet: worn round                             | ring: worn metal round small
chair: wood furniture                          | wardrobe: wood furniture large
sofa: furniture soft large                     | pillow: soft
book: paper                                    | map: paper large
stamp: paper small                             | ball: round toy
doll: toy soft                                 | coin: metal round small
phone: electric small light                    | moon: light round large sky night
computer: electric light toy                   | sun: hot light round large sky yellow
cloud: large sky
"""


def _rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in row.split("|")] for row in text.strip().splitlines()]


QUESTIONS: Mapping[str, str] = {name: question for name, question, _ in _rows(_TRAITS)}
"""The question for each trait."""

_FILLING = re.compile(
    r"^(?:is|does|do|can|has) (?:people )?(?:it )?(?:have |made of |an? |in the )?"
)


def _core(question: str) -> str:
    """`fur` for `does it have fur ?`."""
    return _FILLING.sub("", question.removesuffix(" ?"))


CUES: Mapping[str, tuple[str, ...]] = {
    name: (_core(question), *(cue.strip() for cue in more.split(" , ")))
    for name, question, more in _rows(_TRAITS)
}
"""Phrases that ask for each trait."""

THINGS: Mapping[str, frozenset[str]] = {
    name.strip(): frozenset(traits.split())
    for row in _rows(_THINGS)
    for name, _, traits in (cell.partition(":") for cell in row)
}
"""The traits of each thing."""


SUBJECTS = [Subject(name, cues, QUESTIONS[name]) for name, cues in CUES.items()]


@lru_cache(maxsize=65536)
def traits_in(text: str, judge: Judge | None = None) -> tuple[str, ...]:
    """The traits that a question asks for, in the table's order; a judge is asked last."""
    return tuple(about(text, SUBJECTS, judge))


@lru_cache(maxsize=65536)
def things_in(text: str) -> tuple[str, ...]:
    """The things that a text names, in the table's order."""
    return tuple(name for name in THINGS if mentions(text, name))


def telling(things: Sequence[str]) -> str:
    """The trait whose answer parts `things` most evenly; the first of the table among equals."""
    counts = {trait: sum(trait in THINGS[t] for t in things) for trait in QUESTIONS}
    return min(counts, key=lambda trait: abs(2 * counts[trait] - len(things)))
