"""The expert of service desks: wish by wish, step by step, from wherever an episode stands."""

from progrl.dialogue.messages import Action, Say, ToolCall
from progrl.environments.contracts import State
from progrl.environments.service.environment import ServiceEnvironment
from progrl.environments.service.plans import Ask, Look, Plan, WishPlan


class ServiceExpert:
    """Asks for what it has not heard, looks up what it has not seen, confirms, writes, tells."""

    def next_action(self, state: State) -> Action:
        """The next step of the first wish that is not done; the closing words after the last.

        Raises:
            EnvironmentFault: the episode is not one of a service domain.
        """
        environment = state.played_in(ServiceEnvironment)
        closers = []
        for wish in environment.plan.wishes:
            action = self._advance(environment, wish)
            if action is not None:
                return action
            if wish.write is None or environment.holds(wish):
                closers.append(wish.closer)
            else:
                closers.append(f"cannot {wish.kind.do} it")
        return Say(" . ".join([*closers, "bye"]), closing=True)

    def _advance(self, environment: ServiceEnvironment, wish: WishPlan) -> Action | None:
        open_ = wish.write is not None and not environment.holds(wish)
        if wish.write is not None and open_ and environment.refused(wish.write):
            return None
        for step in wish.steps:
            match step:
                case Look(call, key) if not environment.seen(key):
                    return call
                case Ask(_, value, question) if not environment.heard(value):
                    return Say(question)
                case str() if not environment.identified():
                    return identify(environment, environment.plan)
        if wish.write is None or not open_:
            return None
        return wish.write if environment.agreed(wish.write) else Say(wish.confirm)


def identify(environment: ServiceEnvironment, plan: Plan) -> Action:
    """Find the user by what the user has told, or ask for what is still needed."""
    person = plan.person
    if environment.heard(person["email"]):
        return ToolCall("find_user", {"email": person["email"]})
    if not environment.heard(person["name"]):
        return Say("what is your email ?")
    if not environment.heard(person["zip"]):
        return Say("what is your zip ?")
    return ToolCall("find_user", {"name": person["name"], "zip": person["zip"]})
