"""What service domains share: a desk with records, tools, a policy, and a person who wants things.

To add a service domain, write three things and put them together in a `Service`:

1. `world`: a function from a seed to a `Start` (tables of records, and whom the task is about).
   `world.make_people` makes the users; the table `desk` must be there, empty, for transfers.
2. `tools`: a `Tool` each: its `ToolSpec`, a function that runs it on a `Session`, and for a tool
   that writes the verbs and values that a request to confirm it must name. `SHARED_TOOLS` holds
   those that every desk has.
3. `wishes`: a `Kind` for each thing a user may want (facts to ask for, look-ups, the write, the
   words), a `Form` for each fact, a `Family` for each kind of task, and `fill`, which draws a
   wish's values from the world. `SHARED_KINDS` and `SHARED_FORMS` hold those that all desks have.

A subclass of `ServiceDomain` with that `Service` is a whole `Domain`: tasks, environment, views,
expert. It is found by name once an entry point of the group `progrl.domains` names it.
"""

from progrl.environments.service.domain import ServiceDomain, ServiceOptions
from progrl.environments.service.environment import ServiceEnvironment
from progrl.environments.service.expert import ServiceExpert
from progrl.environments.service.plans import Family, Service
from progrl.environments.service.replay import obedient_reply, replay

__all__ = [
    "Family",
    "Service",
    "ServiceDomain",
    "ServiceEnvironment",
    "ServiceExpert",
    "ServiceOptions",
    "obedient_reply",
    "replay",
]
