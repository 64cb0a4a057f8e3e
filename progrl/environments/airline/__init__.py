"""An airline's service desk: flights and reservations."""

from progrl.environments.airline.tools import POLICY, TOOLS
from progrl.environments.airline.wishes import FAMILIES, FORMS, INSTEAD, KINDS, fill
from progrl.environments.airline.world import start
from progrl.environments.service import Service, ServiceDomain

__all__ = ["Airline"]


class Airline(ServiceDomain):
    """Passengers of an airline and their reservations."""

    service = Service(
        name="airline",
        description="An airline's service desk: flights, reservations, bags and passengers.",
        policy=POLICY,
        tools={tool.spec.name: tool for tool in TOOLS},
        kinds={kind.name: kind for kind in KINDS},
        forms=FORMS,
        families=FAMILIES,
        instead=INSTEAD,
        record="reservation",
        start=start,
        fill=fill,
    )
