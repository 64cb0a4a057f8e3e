"""What people hold against a change, how they put it, and what speaks for it all the same."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from progrl.environments.gyms.recognise import Subject

# A concern, how a person puts it, what in a question asks for it; then an argument that meets it,
# and phrases that do.
_CONCERNS = """
cost | the money it would take | money , cost , costs , price , budget , expensive , afford
  | it saves money in the end
  | cheap , cheaper , save money , saves money , saving money , costs less , costs little , costs
  nothing , cost you nothing , free of charge , for free , pays off , pays for itself ,
  affordable , inexpensive , low price , lower price , bargain , savings , saves you a fortune ,
  few coins , spend less , far less than , expense , wallet , more left , coins
time | the hours it would eat up | time , hours , busy , schedule
  | it saves time every week
  | save time , saves time , saving time , saves hours , quick , quicker , quickly , fast , faster
  , few minutes , five minutes , ten minutes , in no time , minutes a day , spare time , takes
  little time , less time , within an hour , hours a week , hours a month , a moment , spare
  hour , busy person , fit it in , shorter , saves you hours
health | what it might do to my body | health , body , ill , sick , doctor , fitness
  | it keeps you healthy
  | healthy , healthier , good for your heart , good for your body , feel fit , keeps you fit ,
  keep fit , fitter , stronger , doctors recommend , live longer , sleep better , your immune ,
  wholesome , better shape , lowers your blood , ill less , blood pressure , lungs , heart ,
  sleep well
nature | the harm to plants and animals | nature , environment , climate , planet , wildlife
  | it is good for the climate
  | climate , environment , planet , less pollution , emissions , carbon , wildlife , forests ,
  green choice , cleaner air , clean air , less waste , recycled , sustainable , eco , birds ,
  bees , river , rare flowers , living earth , soil
safety | that somebody might get hurt | safety , dangerous , danger , risk , accident , afraid
  | it is safe , for there are hardly any accidents
  | safe , safer , accidents , protects you , protected , secure , low risk , less risk , less
  dangerous , harmless , insured , nobody gets hurt , risk is small , risks are small ,
  insurance , risk is smaller , secured , prevents , no danger
quiet | the noise all around | noise , noisy , loud , quiet , peace
  | it is quiet and lets everybody rest
  | quiet , quieter , silent , silence , makes no noise , less noise , no noise , calm , peaceful
  , undisturbed , barely hear , hardly hear , no sound , not hear , din , asleep , sleep on ,
  each sound , never hear
space | that my flat is full | space , room , storage , small flat
  | it needs hardly any room
  | little room , hardly any room , little space , hardly any space , takes up no , saves space ,
  folds , foldable , fits under , fits into , fits in a , compact , small corner , no extra room
  , be folded , store it , big enough , out of the way , more floor , cellar
ease | that i could never learn it | skill , learn , difficult , hard for you , hard to , talent
  , complicated
  | it is easy , and anybody can learn it
  | easy , easier , easily , simple , simpler , anybody can , anyone can , everyone can , no skill
  , child could , child can , no talent , step by step , teach you , learn it in , effortless ,
  no training , harder things , without training
company | that i would end up lonely | lonely , company , friends , alone , isolated , people
  around
  | it brings you together with friends
  | friends , make friends , together , meet people , meeting people , neighbours will , community
  , club , less lonely , never alone , company , share it with , your family can join , come
  along , one table , merry , loneliness , side by side , join in
looks | how ugly it would look | look , looks , ugly , style , appearance , beautiful
  | it looks beautiful
  | beautiful , pretty , handsome , elegant , looks good , looks great , stylish , lovely ,
  pleasing to the eye , attractive , well designed , looks better , nice to look at , elegance ,
  suits your , tidier , design , grey front
proof | that nobody has shown it works | proof , evidence , works , studies , believe , trust it
  | studies have shown that it works
  | studies , study , research , evidence , proven , tests show , shown that , data show ,
  scientists , experiment , experiments , statistics , measured , experts agree , track record
freedom | that i would be told what to do | freedom , free to , forced , independence , your own
  way , rules
  | it leaves you free to decide
  | free to decide , free to choose , freedom , your own choice , independent , independence , you
  decide , your decision , up to you , whenever you like , as you please , nobody tells you ,
  own pace , own boss , nobody forces , pace yourself , no duty , own wishes , yourself decide
repute | what the neighbours would say | neighbours , repute , reputation , others think ,
  people think , laugh , embarrassed , ashamed
  | people will respect you for it
  | respect , respected , admire , admired , reputation , proud of you , good example , role model
  , respectable , praise , impressed , envy you , popular , the mayor , applaud , applause ,
  shake your hand
return | that there is no way back | undo , way back , go back , regret , commitment , for ever
  , permanent , reverse
  | you can stop at any time
  | stop at any time , stop any time , go back , undo , undone , cancel , try it for , trial ,
  give it back , return it , change your mind later , no obligation , reversible , for a week
  first , quit , nothing is final , put all back , as it was , not final
"""

# What somebody is against, and concerns that would be odd about it.
_TOPICS = """
cycling to work                    | space company
keeping a dog                      | proof
moving to the countryside          | space
growing vegetables on the balcony  | freedom
learning a foreign language        | nature safety space looks
eating less meat                   | space quiet
taking the bus                     | looks space return
buying used clothes                | quiet ease
working from home                  | looks nature
joining a choir                    | nature space safety
solar panels on the roof           | company
a night train for the holidays     | ease looks
teaching robots at school          | space nature
a park instead of the car park     | ease freedom
opening the library on sundays     | health nature looks space
a speed limit in our street        | space looks company
paying by card alone               | nature space quiet looks
a shared garden                    | proof ease
getting up at six                  | space looks nature safety
playing a musical instrument       | nature safety
a shorter working week             | space looks safety
swimming in winter                 | space quiet nature
building with wood                 | company freedom time
repairing old machines             | company freedom
"""


@dataclass(frozen=True, slots=True)
class Concern:
    """A concern: how a person puts it, phrases that ask for it, and an argument that meets it."""

    worry: str
    asked_by: tuple[str, ...]
    case: str


def _rows(text: str) -> list[list[str]]:
    joined = re.sub(r"\n +", " ", text)
    return [[cell.strip() for cell in row.split("|")] for row in joined.strip().splitlines()]


def _phrases(cell: str) -> tuple[str, ...]:
    return tuple(phrase.strip() for phrase in cell.split(" , "))


CONCERNS: Mapping[str, Concern] = {
    name: Concern(worry, _phrases(asked), case) for name, worry, asked, case, _ in _rows(_CONCERNS)
}
ARGUMENTS: Mapping[str, Subject] = {
    name: Subject(name, _phrases(cues), case) for name, _, _, case, cues in _rows(_CONCERNS)
}
"""What arguments may be about: the concern that they meet."""

TOPICS: Mapping[str, tuple[str, ...]] = {
    topic: tuple(name for name in CONCERNS if name not in odd.split())
    for topic, odd in _rows(_TOPICS)
}
"""What somebody may be against, and the concerns that one may have about it."""
