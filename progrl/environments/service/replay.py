"""The shortest conversation: the expert and a user who answers what is asked, and no more."""

from collections.abc import Sequence

from progrl.dialogue.acts import asks_confirmation, contains, mentions
from progrl.dialogue.messages import Message, Say
from progrl.dialogue.tasks import Task
from progrl.dialogue.trajectories import Outcome, assistant_message
from progrl.dialogue.users import UserReply, UserView
from progrl.environments.contracts import Environment, Expert, State

LIMIT = 40


def obedient_reply(view: UserView, text: str, replies: int) -> UserReply:
    """Answer the agent's words `text`, after `replies` earlier answers.

    The user announces a scheduled change of the goal at its reply, tells the facts asked for, and
    confirms what it wants.
    """
    change = view.change
    if change is not None:
        if replies + 1 == change.at_reply:
            return UserReply(change.text, "change_goal")
        if replies + 1 > change.at_reply:
            view = change.view
    if asks_confirmation(text):
        wanted = any(
            wish.kind == "act"
            and contains(text, wish.verbs)
            and all(mentions(text, value) for value in wish.mentions)
            for wish in view.wishes
        )
        return UserReply("yes", "confirm") if wanted else UserReply("no , not that", "correct")
    asked = [fact.value for fact in view.facts if contains(text, fact.cues)]
    return UserReply(f"it is {' and '.join(asked)}" if asked else "i do not know", "inform")


def replay(
    task: Task, environment: Environment, expert: Expert, view: UserView
) -> tuple[list[Message], Outcome]:
    """Let the expert play a task with the obedient user, for `LIMIT` turns at most.

    The agent's messages in the history are the turns it took.
    """
    environment.reset(task)
    history, replies = [Message("user", task.query)], 0
    for _ in range(LIMIT):
        action = expert.next_action(State(task, environment, history))
        result = environment.step(action)
        history.append(assistant_message(action, ""))
        if isinstance(action, Say):
            if action.closing:
                break
            reply = obedient_reply(view, action.text, replies)
            environment.hear(reply)
            replies += 1
            history.append(Message("user", reply.text))
        else:
            history.append(Message("tool", result.observation))
    return history, environment.outcome()


def turns(history: Sequence[Message]) -> int:
    """The agent's turns in a history."""
    return sum(message.role == "assistant" for message in history)
