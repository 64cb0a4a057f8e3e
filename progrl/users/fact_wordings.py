"""How users tell certain facts; any other fact is told in the general wordings."""

from collections.abc import Mapping


def of(table: str) -> tuple[str, ...]:
    """The wordings of a table: set apart by bars and line ends."""
    cells = (cell.strip() for line in table.splitlines() for cell in line.split("|"))
    return tuple(cell for cell in cells if cell)


FACT_CORES: Mapping[str, tuple[str, ...]] = {
    "email": of(
        """
        my email is {value} | write to {value} | email {value} | you can mail me at {value}
        my mail address is {value} | i signed up with {value} | mail goes to {value}
        i use {value} | look for {value}
        """
    ),
    "name": of(
        """
        my name is {value} | i am {value} | this is {value} | my full name is {value}
        i am called {value} | it is under {value} | you speak with {value} | look for {value}
        """
    ),
    "zip": of(
        """
        my zip is {value} | zip {value} | the zip code is {value} | my postal code is {value}
        i live in {value} | my town has {value} | my zip code here is {value}
        """
    ),
    "order": of(
        """
        it is order {value} | order {value} | the order number is {value} | my order is {value}
        the order id says {value} | i mean order {value} | it is about order {value}
        it is number {value} | look at order {value} | the order with {value}
        """
    ),
    "reservation": of(
        """
        it is reservation {value} | reservation {value} | the reservation number is {value}
        my reservation is {value} | the reservation id says {value} | i mean reservation {value}
        it is about reservation {value} | it is number {value} | look at reservation {value}
        """
    ),
    "item": of(
        """
        it is the {value} | the {value} | i mean the {value} | it is about the {value}
        the {value} please | the item is the {value} | only the {value} | just the {value}
        """
    ),
    "option": of(
        """
        i want {value} | make it {value} | in {value} please | i would like {value}
        the new one should be {value} | i prefer {value} | the new option is {value}
        give me {value} | i like {value} better
        """
    ),
    "address": of(
        """
        send it to {value} | the new address is {value} | i live at {value} now
        it should go to {value} | bring it to {value} | we moved to {value} | ship it to {value}
        my new home is {value}
        """
    ),
    "pay": of(
        """
        use {value} | the new payment is {value} | i pay with {value} | take {value}
        charge {value} | i want to pay by {value} | put it on {value} | with {value} please
        """
    ),
    "reason": of(
        """
        the reason is {value} | reason {value} | because of {value} | put {value} as the reason
        it was {value} | call it {value} | i would say {value} | you can write {value}
        """
    ),
    "origin": of(
        """
        from {value} | i start in {value} | i fly from {value} | i leave from {value}
        we start in {value} | my trip starts in {value} | start in {value}
        """
    ),
    "destination": of(
        """
        to {value} | i go to {value} | i fly to {value} | i want to get to {value}
        we go to {value} | my trip ends in {value} | it should be to {value}
        """
    ),
    "day": of(
        """
        on day {value} | the day is {value} | day {value} | i want day {value}
        make it day {value} | i can fly on day {value} | day {value} would be good
        """
    ),
    "bags": of(
        """
        i have {value} bags | make it {value} bags | it is {value} bags | please , {value} bags
        i bring {value} bags | we have {value} bags | put down {value} bags
        """
    ),
    "passenger": of(
        """
        it is for {value} | the new passenger is {value} | now {value} flies | give it to {value}
        put {value} on it | instead {value} goes | make it {value} | the name is {value}
        """
    ),
}
"""Short wordings that tell a fact of that name."""
