"""A shop's service desk: orders, products, returns, exchanges."""

from progrl.environments.retail.tools import POLICY, TOOLS
from progrl.environments.retail.wishes import FAMILIES, FORMS, INSTEAD, KINDS, fill
from progrl.environments.retail.world import start
from progrl.environments.service import Service, ServiceDomain

__all__ = ["Retail"]


class Retail(ServiceDomain):
    """Users of a shop and their orders."""

    service = Service(
        name="retail",
        description="A shop's service desk: orders, products, returns, exchanges and payments.",
        policy=POLICY,
        tools={tool.spec.name: tool for tool in TOOLS},
        kinds={kind.name: kind for kind in KINDS},
        forms=FORMS,
        families=FAMILIES,
        instead=INSTEAD,
        record="order",
        start=start,
        fill=fill,
    )
