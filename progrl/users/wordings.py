"""How users put things: wordings by kind of move, with slots.

Slots: {value} what is told, {label} what it is called ("order to return"), {wish} what is wanted.
All of it is short, in lower case and in few distinct words: small models read it. Only what
confirms may sound like a yes (`dialogue.acts.affirms`), and no wording starts with a slot.
"""

from collections.abc import Mapping

from progrl.users.fact_wordings import FACT_CORES, of

Wordings = Mapping[str, tuple[str, ...]]

CORES: Wordings = {
    "inform": of(
        """
        it is {value} | that is {value} | that would be {value} | it should be {value}
        here it is , {value} | here you are , {value} | you can use {value} | please use {value}
        i have {value} | i see {value} here | my answer is {value} | it says {value}
        it must be {value} | let me see , it is {value} | one moment , it is {value}
        i looked it up , it is {value} | i wrote it down , it is {value} | i found it , {value}
        the {label} is {value} | the {label} ? it is {value} | for the {label} , it is {value}
        as for the {label} , {value} | you asked for the {label} . it is {value}
        about the {label} , it is {value} | the {label} would be {value} | the {label} : {value}
        the {label} should be {value} | i think the {label} is {value}
        here is the {label} , {value} | please take {value} as the {label}
        write {value} for the {label} | my answer for the {label} is {value}
        """
    ),
    "several": of(
        """
        it is {value} | here you are , {value} | i have {value} | please use {value}
        that would be {value} | you need this : {value} | let me see , {value}
        here is what i have : {value} | all of it : {value} | i can tell you {value}
        take this : {value} | this is all : {value} | i give you {value}
        """
    ),
    "repeat": of(
        """
        as i said , it is {value} | i said {value} | again , it is {value} | still {value}
        i told you , it is {value} | once more , it is {value} | like before , {value}
        you have it already , {value} | it is still {value} | as before , {value}
        as i said , the {label} is {value} | i told you the {label} , {value}
        again , the {label} is {value} | the {label} is still {value}
        """
    ),
    "confirm": of(
        """
        yes | yes please | yes , go ahead | yes , do it | yes , that is right
        yes , please do that | yes , that is what i want | yes , all of it is right
        yes , i want that | yes , do that now | yes , you have it | yes , i am sure
        ok | ok , go ahead | ok , do it | ok , that is fine | okay , please do | okay , go ahead
        sure | sure , go ahead | sure , do that | sure , that is right | sure , do it please
        right | right , go ahead | right , do that | correct | correct , please do it
        correct , go ahead | go ahead | go ahead please | please do | please do that | do it please
        do it now | exactly | exactly , go ahead | exactly that | perfect , do that
        sounds good | sounds good , do it | that is right , go ahead | that is right , do it
        i confirm | i confirm that | confirmed | fine , do it | absolutely | absolutely , do it
        """
    ),
    "correct": of(
        """
        no , {wish} | no . {wish} | no , that is wrong . {wish} | no , that is not it . {wish}
        no , not that . {wish} | no , you got it wrong . {wish} | no , please check . {wish}
        no , stop . {wish} | no , that is not what i said . {wish} | no , do not do that . {wish}
        no thanks . {wish} | no , something is off . {wish} | not that . {wish}
        that is wrong . {wish} | that is not right . {wish} | wrong one . {wish}
        do not do that . {wish} | stop , not that . {wish} | no , look again . {wish}
        """
    ),
    "amend": of(
        """
        no , the {label} is {value} | no , it is {value} | no , {value} please
        no , i said {value} | no , that is wrong , it is {value} | no , make it {value}
        not that , the {label} is {value} | wrong , it is {value} | no , check the {label} , {value}
        no , the {label} should be {value} | no , use {value} | that is wrong . i said {value}
        """
    ),
    "restate": of(
        """
        as i said , {wish} | what i want is this : {wish} | my wish is this : {wish}
        i only say this : {wish} | let me say it again , {wish} | to be clear , {wish}
        i came for this : {wish} | once more , {wish} | please listen , {wish}
        """
    ),
    "clarify": of(
        """
        what do you need that for ? | why do you ask ? | do you really need that ?
        can you say why you need it ? | is that needed ? | must i give that ? | what for ?
        hm , why is that ? | is there no other way ? | can you explain that ?
        do you not have the {label} already ? | why do you need the {label} ?
        what is the {label} for ? | is the {label} really needed ? | must i tell you the {label} ?
        who can see the {label} ? | do you mean the {label} ? | so you want the {label} ?
        which {label} do you mean ? | where do i find the {label} ?
        """
    ),
    "confused": of(
        """
        sorry , what do you need from me ? | i do not understand | i do not know what you mean
        what do you mean ? | can you say that again ? | what do you need to know ?
        i am not sure what you ask | what should i tell you ? | could you ask me what you need ?
        what was that ? | i did not get that | please say it in other words
        """
    ),
    "unknown": of(
        """
        i do not know that | i am not sure about that | no idea , sorry | i can not tell
        i do not have that | i can not find that | that i do not know
        sorry , i do not have it here | i never had that | i have nothing like that
        you should have that , not me | i can not help you with that | i do not want to say that
        i would have to guess
        """
    ),
    "challenge": of(
        """
        are you sure ? | is that really right ? | how do you know ? | did you check that ?
        are you sure about that ? | can you check that again ? | hm , is that so ?
        please look once more | can i trust that ? | wait , did you look at it well ?
        do you really mean that ? | what makes you say that ? | i am not so sure , are you ?
        what happens then ? | can that be undone ? | wait , say that again please
        """
    ),
    "doubt": of(
        """
        are you sure ? | is that so ? | really ? | can that be ? | how do you know that ?
        did you check that ? | please look again | can you check that once more ?
        that sounds odd , are you sure ? | i thought it was something else | hm , really ?
        where do you see that ?
        """
    ),
    "more": of(
        """
        thanks . and {wish} | good . now {wish} | thanks . but {wish} | what about the rest ? {wish}
        thank you . as i said , {wish} | good to know . still , {wish} | great . then {wish}
        well . {wish} | nice , and now {wish} | next , {wish} | thanks , one more thing . {wish}
        thanks , but {wish} | good , that is done . now {wish} | thank you . also , {wish}
        """
    ),
    "still": of(
        """
        that does not help me . {wish} | i still wait . {wish} | hello ? {wish}
        you did not answer me . {wish} | and what about me ? {wish} | i see . but {wish}
        that is not what i asked . {wish} | please help me . {wish} | but {wish} | and ? {wish}
        that may be . still , {wish} | i know . but {wish}
        """
    ),
    "want": of(
        """
        please , {wish} | well , {wish} | there is one thing , {wish} | you can help me , {wish}
        as i said , {wish} | just this , {wish} | this is it , {wish} | it is like this , {wish}
        i need your help , {wish} | only this , {wish}
        """
    ),
    "wait": of(
        """
        i wait | i will wait | thanks , i wait | thank you , i wait | good , i will wait
        take your time | no hurry | please tell me when it is done | i am here | thanks
        good | thank you | let me know | i stay here
        """
    ),
    "thank": of(
        """
        thank you , that is all | thanks , bye | thank you very much , bye | great , that was all
        thanks a lot , that is it | thank you , bye | good , nothing more | many thanks , bye
        wonderful , thanks , bye | that was it , thank you | many thanks , have a nice day
        thank you , you helped me well | thanks , i have all i need | great , thanks , bye
        """
    ),
    "leave": of(
        """
        i have no more time , bye | this takes too long , bye | i give up , bye
        i will try again later , bye | this does not work , bye | never mind , bye
        forget it , bye | i have to go now , bye | that is enough for me , bye
        you can not help me , bye | i will ask someone else , bye | we get nowhere , bye
        """
    ),
}
"""Short wordings by kind of move, for any fact."""

PREFIXES: Wordings = {
    "inform": of(
        """
        of course , | well , | ah , | hm , | so , | no problem , | let me look . | good question .
        i have it here . | thanks for asking . | one second , | oh , | i see ,
        """
    ),
    "several": of("of course , | well , | ah , | hm , | so , | no problem , | let me look ."),
    "repeat": of("well , | ah , | hm , | look , | oh , | listen , | please note ,"),
    "confirm": (),
    "correct": of("wait , | oh , | hm , | sorry , | hold on , | stop ,"),
    "amend": of("wait , | oh , | hm , | sorry , | hold on ,"),
    "restate": of("well , | hm , | wait , | sorry , | look , | oh ,"),
    "clarify": of("hm , | well , | sorry , | wait , | hold on , | one question . | oh ,"),
    "confused": of("hm , | well , | wait , | excuse me , | oh , | look ,"),
    "unknown": of("hm , | well , | sorry , | oh , | i looked , but | let me think . | no ,"),
    "challenge": of("hm , | well , | wait , | sorry , | hold on , | one moment . | oh ,"),
    "doubt": of("hm , | well , | wait , | sorry , | oh , | one moment ."),
    "more": of("ah , | oh , | well , | i see . | i understand ."),
    "still": of("hm , | well , | wait , | excuse me , | oh , | look , | sorry ,"),
    "want": of("ah , | oh , | hm , | thanks . | hello , | so ,"),
    "wait": of("ah , | oh , | well , | i see . | i understand ."),
    "thank": of("ah , | oh , | i see . | well done . | very good ."),
    "leave": of("sorry , | well , | no , | look , | ah , | hm ,"),
}
"""What may come before a wording in a long one."""

SUFFIXES: Wordings = {
    "inform": of(
        """
        please | i think | i believe | . thanks | . thank you | . does that help ? | . is that all ?
        . i hope that helps | . what next ? | . do you need more ? | . that is all i have
        . please hurry | if i am right | as far as i know
        """
    ),
    "several": of(". thanks | . thank you | . does that help ? | . is that all ? | . what next ?"),
    "repeat": of(". please note it | . thanks | . did you not see it ? | please | . what next ?"),
    "confirm": of(
        """
        , thanks | , thank you | . please hurry | , that would be great | , i am sure | , no change
        . i wait | , as i said | , and thanks for asking | , at last
        """
    ),
    "correct": of(". please | . thanks | . listen please | . is that so hard ? | . try again"),
    "amend": of("please | . thanks | . listen please | . try again | . ask me again"),
    "restate": of(". please | . thanks | . is that clear ? | . can you do that ?"),
    "clarify": of("i only ask | just to know | . i like to be careful | . thanks"),
    "confused": of(". please | . thanks | . i only want some help"),
    "unknown": of(". sorry | . is that a problem ? | . can you look ? | . what now ?"),
    "challenge": of("i only ask | . it matters to me | . please | . thanks"),
    "doubt": of("i only ask | . it matters to me | . please | . thanks"),
    "more": of(". please | . thanks | . can you do that ? | . that is all then"),
    "still": of(". please | . thanks | . can you do that ? | . i only want some help"),
    "want": of(". please | . thanks | . can you do that ?"),
    "wait": of(". please hurry | . but not too long | . no problem | . i have time"),
    "thank": of(". have a nice day | . take care | . see you | . good work"),
    "leave": of(". sorry | . too bad | . what a pity"),
}
"""What may come after a wording in a long one."""

WEIGHTS: Mapping[str, int] = {
    "inform": 34,
    "several": 4,
    "repeat": 4,
    "confirm": 13,
    "correct": 6,
    "amend": 4,
    "restate": 3,
    "clarify": 6,
    "confused": 3,
    "unknown": 4,
    "challenge": 4,
    "doubt": 3,
    "more": 3,
    "still": 3,
    "want": 2,
    "wait": 2,
    "thank": 3,
    "leave": 2,
}
"""How much of a memory each kind of move gets."""

ACTS: Mapping[str, str] = {
    "several": "inform",
    "amend": "correct",
    "restate": "ask",
    "confused": "clarify",
    "doubt": "challenge",
    "more": "ask",
    "still": "ask",
    "want": "ask",
}
"""The dialogue act of a kind of move, where it has another name."""


def cores(kind: str, topics: frozenset[str]) -> list[tuple[str, str]]:
    """Topic and words of all short wordings of a kind; the topic is "" where they fit any."""
    general = [("", text) for text in CORES[kind]]
    if kind != "inform":
        return general
    return general + [(t, text) for t in sorted(topics) for text in FACT_CORES.get(t, ())]


def authored() -> int:
    """How many wordings, prefixes and suffixes were written, not composed."""
    tables = (CORES, FACT_CORES, PREFIXES, SUFFIXES)
    return sum(len(texts) for table in tables for texts in table.values())
