"""Wants that leave open what matters, and the details that may matter."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from progrl.environments.gyms.recognise import Subject

# A detail, its importance, the question for it, what may be wanted; then phrases that ask for it.
_DETAILS = """
budget | 3 | what budget do you have ? | shoestring , midrange , lavish
  | cost , costs , price , spend , money , afford , expensive , euros , cheap
date | 3 | which date do you have in mind ? | june , autumn , newyear
  | when is , when do , when does , when should , when will , when would , when are , what day ,
  which day , month , season , weekend , time of the year , saturday
duration | 2 | how long should it take ? | fortnight , anhour , wholeday
  | how many hours , how many days , duration , last for , length of time , how long shall , how
  long will , how long is
company | 2 | who will be there ? | solo , twosome , crowd
  | who is coming , how many people , guests , alone , with whom , group , company , who else ,
  family
place | 3 | where should it be ? | cellar , lakeside , downtown
  | location , place , region , city , venue , which country , which room
mood | 1 | what mood should it have ? | solemn , playful , dreamy
  | atmosphere , vibe , style , feel like , tone
experience | 2 | how much experience do you have ? | novice , seasoned , amateur
  | beginner , done this before , skill , expert , first time , how good are you , how well do you
  know
gear | 1 | what equipment do you own ? | nothingyet , secondhand , professional
  | gear , tools do you , have at home already , supplies , materials , at home , kit
diet | 3 | do you keep to a diet ? | vegan , nutfree , kosher
  | allergy , allergies , vegetarian , eat , food , dishes , meat
music | 1 | which music do you like ? | jazz , techno , folk
  | songs , song , band , playlist , listen to , singer
colour | 1 | what colour do you like best ? | turquoise , crimson , ochre
  | colours , color , colors , shade , bright , blue , green
size | 2 | what size should it have ? | pocketsize , roomy , gigantic
  | how big , how large , how small , dimensions , how tall , large one
language | 2 | which language do you use ? | swahili , danish , korean
  | languages , speak , in english or , translated , english
audience | 2 | who is it meant for ? | toddlers , seniors , colleagues
  | audience , who will read , who will see , aimed at , reader , readers , to whom
format | 2 | in which format do you want it ? | booklet , slideshow , poster
  | form should , printed or , digital , layout , paper or
deadline | 3 | by when must it be ready ? | tonight , nextweek , yearend
  | by when , deadline , due , urgent , how soon , finished by , last possible , time do we have
transport | 1 | how do you get there ? | tram , ferry , tandem
  | transport , by car , by train , travel to , vehicle , drive , get there , fly
health | 3 | do you have any health problem ? | asthma , badknee , migraine
  | injury , injuries , medical , illness , pain , fit enough
purpose | 2 | what is the purpose of it ? | hobby , promotion , charity
  | goal , why do you , aim , reason , hope to achieve , pleasure , get out of
source | 1 | which sources do you trust ? | archives , newspapers , interviews
  | source , references , based on , where from should the data , sources
"""

# What one may want; the details that may matter.
_WANTS = """
plan a birthday party           | budget date company place mood diet music
organise a hike                 | date duration company experience gear transport health
learn to paint                  | budget duration experience gear colour purpose size
write a speech                  | duration audience mood deadline language purpose source
cook a dinner                   | budget date company diet experience gear mood
furnish a study                 | budget size colour mood deadline purpose gear
start to run                    | date duration experience gear health music purpose
make a report                   | audience format deadline language source purpose size
find a present                  | budget date colour size purpose mood deadline
arrange a concert               | budget date company place music transport audience
build a shed                    | budget deadline experience gear size colour place
prepare a lesson                | duration audience format language experience source gear
design a leaflet                | audience format colour language deadline mood size
book a holiday                  | budget date duration company place transport health
make a short film               | budget duration audience place mood music gear
found a reading club            | date company place language audience purpose mood
"""


@dataclass(frozen=True, slots=True)
class Detail:
    """A detail, how much it mostly matters (1 to 3), its question, and what may be wanted."""

    importance: int
    question: str
    values: tuple[str, ...]


def _rows(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in row.split("|")] for row in text.strip().splitlines()]


def _details() -> list[list[str]]:
    """Name, importance, question, values and cues of each detail."""
    return _rows(re.sub(r"\n +", " ", _DETAILS))


DETAILS: Mapping[str, Detail] = {
    name: Detail(int(importance), question, tuple(values.split(" , ")))
    for name, importance, question, values, _ in _details()
}
SUBJECTS: Mapping[str, Subject] = {
    name: Subject(name, (name, *cues.split(" , "), question.removesuffix(" ?")), question)
    for name, _, question, _, cues in _details()
}
"""What questions may ask for."""

WANTS: Mapping[str, tuple[str, ...]] = {want: tuple(d.split()) for want, d in _rows(_WANTS)}
"""The details that may matter for each want."""
