from progrl.dialogue.messages import Say, ToolCall
from progrl.dialogue.trajectories import End
from progrl.reporting.viewer import ENDS, ending, entries
from tests.evaluation.records import make_task, make_trajectory


def test_every_message_in_order():
    actions = (Say("Which order?"), ToolCall("look_up", {"order": 12}), Say("Bye.", closing=True))
    trajectory = make_trajectory(make_task(7), actions)
    first, second, _ = trajectory.turns
    first.observation, first.source, first.act = "the second", "user", "change_goal"
    second.failed, second.milestones = True, ("found_order",)
    shown = entries(trajectory)
    assert [e.kind for e in shown] == ["user", "say", "user", "call", "result", "say"]
    assert shown[0].text == "Task 7." and shown[2].notes == ("change goal",)
    assert shown[3].text == "look_up" and shown[3].arguments == (("order", "12"),)
    assert shown[3].failed and shown[4].failed and shown[3].notes == ("✓ found order",)
    assert shown[5].notes == ("closes",)


def test_a_message_that_is_no_action_is_shown_as_it_was():
    trajectory = make_trajectory(make_task(), (Say("x"),))
    turn = trajectory.turns[0]
    turn.action, turn.text, turn.observation, turn.source = None, "call(", "error: no call", "tool"
    turn.failed = True
    broken, result = entries(trajectory)[1:]
    assert (broken.kind, broken.text, broken.failed) == ("broken", "call(", True)
    assert (result.kind, result.text) == ("result", "error: no call")


def test_how_it_ended():
    assert (
        ending(make_trajectory(make_task())) == "After 2 turns the agent closed the conversation."
    )
    lost = make_trajectory(make_task(), end=End.FAULT)
    assert ending(lost) == "After 2 turns lost to a fault: EngineFault: gone."


def test_every_end_is_told_in_words():
    assert set(ENDS) == set(End)
    assert len(set(ENDS.values())) == len(End)
