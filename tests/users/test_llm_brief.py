"""What the model that plays the user is told, and which of its answers are used."""

import json
from collections import Counter
from collections.abc import Sequence
from itertools import islice

import pytest

from progrl.agent.seats import ExpertAgent
from progrl.dialogue.acts import mentions
from progrl.dialogue.messages import Message
from progrl.dialogue.tasks import Task
from progrl.dialogue.users import Fact, GoalChange, UserReply, UserView
from progrl.environments.contracts import Domain
from progrl.environments.registry import domain
from progrl.environments.service.plans import Look, compile_plan
from progrl.rollout import World
from progrl.seeds import Seed
from progrl.users.contracts import Profile
from progrl.users.decisions import Talk
from progrl.users.llm_brief import Brief, BrokenForm
from progrl.users.profiles import draw, profile
from progrl.users.scripted import ScriptedUser
from tests.users.desk import (
    CANCEL,
    EMAIL,
    PLAIN,
    POINTS,
    REDIRECT,
    conversation,
    memory,
    view,
)

RETAIL = domain("retail")
TASKS = 1000


class RenderingUser:
    """Renders the prompt of each reply, and lets the scripted user give it."""

    def __init__(self, name: str) -> None:
        self.user = ScriptedUser(memory(name))
        self.prompts: list[tuple[UserView, list[Message], str]] = []

    async def reply(
        self, history: Sequence[Message], view: UserView, profile: Profile
    ) -> UserReply:
        talk = Talk.of(history, view)
        change = view.change
        if change is None or len(talk.said) != change.at_reply:
            prompt = Brief.of(talk, profile).messages(profile)
            text = "\n".join(message["content"] for message in prompt)
            self.prompts.append((view, list(history), text))
        return await self.user.reply(history, view, profile)


def tool_values(domain: Domain, task: Task) -> set[str]:
    """All that the goal holds and the user never knows: what is told, looked up, written."""
    goals = [task.goal]
    if change := task.schedule.get("change"):
        goals.append(change["goal"])
    values: set[str] = set()
    for goal in goals:
        plan = compile_plan(domain.service, goal, domain._start(task.setup["seed"]))  # type: ignore[attr-defined]
        values |= {plan.user}
        for wish in plan.wishes:
            values |= set(wish.tell)
            calls = [step.call for step in wish.steps if isinstance(step, Look)]
            calls += [wish.write] if wish.write else []
            for call in calls:
                values |= {str(value) for value in call.arguments.values()}
        values |= {v for wish in goal["wishes"] for k, v in wish.items() if k != "kind"}
    return values


@pytest.mark.parametrize("name", ["retail", "airline"])
def test_no_prompt_of_a_thousand_tasks_holds_a_hidden_value(name: str) -> None:
    played, user = domain(name), RenderingUser(name)
    tasks = {task.query: task for task in islice(played.tasks("train", 3), TASKS // 2)}
    world = World({name: played}, {name: user}, lambda seed: draw("all", seed), 64)
    node = Seed.root(3)
    specs = [
        world.spec(task, node.child("u", i), node.child("a", i), 20, {})
        for i, task in enumerate(tasks.values())
    ]
    assert all(t.valid for t in world.play(specs, ExpertAgent()))
    found: Counter[str] = Counter()
    for seen, history, prompt in user.prompts:
        bare = Brief.of(Talk.of([Message("user", "?"), Message("assistant", "!")], seen), PLAIN)
        empty = "\n".join(m["content"] for m in bare.messages(PLAIN))
        change = seen.change
        later = change is not None and len(Talk.of(history, seen).said) <= change.at_reply
        facts = [*seen.facts, *(change.view.facts if change else ())]
        heard = [m.content for m in history if m.role == "assistant"]
        said = [m.content for m in history if m.role == "user"]
        now = seen.facts if change is None or later else change.view.facts
        asked = {f.value for f in now if any(mentions(t, c) for t in heard for c in f.cues)}
        hidden = tool_values(played, tasks[seen.query]) | {f.value for f in facts}
        hidden -= asked
        assert change is None or not later or change.text not in prompt
        for value in sorted(asked, key=len, reverse=True):  # "65" is a part of "bank-65"
            prompt = prompt.replace(value, "")
        for value in sorted(hidden):
            if any(mentions(text, value) for text in (*heard, *said)):
                found["spoken"] += 1
            elif not mentions(empty, value):  # a value may be a word of the rules, as "done"
                found["hidden"] += 1
                assert not mentions(prompt, value), (value, prompt)
    assert len(user.prompts) > TASKS
    assert found["hidden"] > 10 * TASKS / 2, found
    assert found["spoken"] > TASKS / 2


def prompt_of(*texts: str, seen: UserView | None = None, of: Profile = PLAIN) -> str:
    brief = Brief.of(Talk.of(conversation(*texts), seen or view(CANCEL, REDIRECT)), of)
    return brief.messages(of)[1]["content"]


def test_a_fact_is_disclosed_by_being_asked_for_or_told() -> None:
    before = prompt_of("how can i help ?")
    assert "ana12@mail.com" not in before
    assert "- zip: 4711" in before  # the query tells it
    after = prompt_of("what is your email ?")
    assert "- email: ana12@mail.com" in after
    assert "62150" not in after
    later = prompt_of("what is your email ?", "what do you mean ?", "well , how can i help ?")
    assert "- email: ana12@mail.com" in later


def test_whether_a_proposal_is_wanted_is_told_without_its_values() -> None:
    wanted = prompt_of("cancel order 73933 . confirm ?")
    assert "just what you want" in wanted
    assert "Allowed acts: confirm." in wanted
    wrong = prompt_of("redirect order 11111 to 9 elm . confirm ?")
    assert "Do not agree" in wrong
    assert "confirm" not in wrong.split("Allowed acts:")[1]
    assert "62150" not in wrong


def test_what_was_to_be_known_is_a_yes_or_a_no() -> None:
    seen = view(POINTS)
    assert "104" not in prompt_of("one moment .", seen=seen)
    told = prompt_of("you have 99 points .", seen=seen)
    assert "What you want: i want to know my points" in told
    assert "You may not end" in told
    right = prompt_of("you have 104 points .", seen=seen)
    assert "What you want: nothing more" in right
    assert "You may end" in right


def test_after_the_goal_has_changed_the_prompt_is_about_the_new_one() -> None:
    new = Fact("order", "62150", ("which order",))
    change = GoalChange(1, "sorry , i mean my other order", view(REDIRECT, facts=(EMAIL, new)))
    seen = view(CANCEL, change=change)
    assert "cancel" in prompt_of("hello .", seen=seen).split("What you want")[1]
    after = prompt_of("hello .", change.text, "hm .", seen=seen).split("What you want")[1]
    assert "redirect" in after
    assert "cancel" not in after


def test_patience_is_a_rule() -> None:
    brisk = profile("brisk")
    short = Profile("short", 1, *[getattr(brisk, n) for n in Profile.__slots__[2:]])
    brief = Brief.of(Talk.of(conversation("hm .", "well ?", "hm , hm ."), view(CANCEL)), short)
    assert (brief.acts, brief.must_leave) == (("leave",), True)


def draft(act: str, text: str, done: bool = False) -> str:
    return json.dumps({"act": act, "text": text, "done": done})


ASKED = Brief.of(Talk.of(conversation("what is your email ?"), view(CANCEL, REDIRECT)), PLAIN)
WANTED = Brief.of(Talk.of(conversation("cancel order 73933 . ok ?"), view(CANCEL)), PLAIN)
CONFIRM = Brief.of(Talk.of(conversation("cancel order 73933 . confirm ?"), view(CANCEL)), PLAIN)


@pytest.mark.parametrize(
    ("brief", "content", "why"),
    [
        (ASKED, "ana12@mail.com", "not one JSON object"),
        (ASKED, '["inform"]', "must have the keys"),
        (ASKED, '{"act": "inform", "text": "x"}', "must have the keys"),
        (ASKED, '{"act": "inform", "text": "x", "done": "no"}', "done true or false"),
        (ASKED, draft("inform", " "), "1 to 600 characters"),
        (ASKED, draft("inform", "x" * 601), "1 to 600 characters"),
        (ASKED, draft("dance", "ana12@mail.com"), 'act "dance" is not one of inform, clarify'),
        (ASKED, draft("confirm", "ana12@mail.com"), "is not one of"),
        (ASKED, draft("inform", "it is anna at mail"), "exactly as it is listed"),
        (ASKED, draft("inform", "ana12@mail.com , and order 62150"), "not asked for"),
        (ASKED, draft("inform", "ana12@mail.com") * 2, "not one JSON object"),
        (CONFIRM, draft("confirm", "no way"), 'begin with "yes"'),
    ],
)
def test_answers_that_cannot_be_used(brief: Brief, content: str, why: str) -> None:
    with pytest.raises(BrokenForm, match=why):
        brief.read(content)


@pytest.mark.parametrize(
    "content",
    [
        draft("inform", "it is\n ANA12@mail.com"),
        f"<think>they ask {{}} for {EMAIL.value}</think>\n{draft('inform', EMAIL.value)}",
        f"```json\n{draft('inform', EMAIL.value)}\n```",
    ],
)
def test_thoughts_and_fences_stay_behind(content: str) -> None:
    found = ASKED.read(content)
    assert (found.act, found.done) == ("inform", False)
    assert found.text.lower() in {EMAIL.value, f"it is {EMAIL.value}"}


def test_an_early_end_is_known() -> None:
    assert ASKED.early(ASKED.read(draft("clarify", "bye", done=True)))
    assert not ASKED.early(ASKED.read(draft("clarify", "what ?")))
    assert WANTED.acts
