"""Gyms: small worlds in which one skill of talking and finding out is trained.

To add one, write in a file: a `GymEnvironment` (what a call or the user's words lead to), an
expert, and a `Gym` that draws tasks, names what each of the three choices stands for, and answers
as the user by rule. `docs/examples/meeting` is the smallest example. A gym is found by name as any
domain is.
"""

from progrl.environments.gyms.base import Draft, Gym, GymEnvironment, GymOptions
from progrl.environments.service.tools import spec

__all__ = ["Draft", "Gym", "GymEnvironment", "GymOptions", "spec"]
