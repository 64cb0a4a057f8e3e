"""A page on this machine alone where a person plays an episode, as the user or as the agent."""

from progrl.serving.app import make_app, make_server
from progrl.serving.dealer import Dealer, Role
from progrl.serving.games import Limits
from progrl.serving.saved import delete, saved

__all__ = ["Dealer", "Limits", "Role", "delete", "make_app", "make_server", "saved"]
