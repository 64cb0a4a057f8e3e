"""Who plays the user of a benchmark: its own rule, a language model, or a person.

The model and the person have the scenario, and the user's own tools where there are some, so they
can play only where the benchmark has scenarios (`HasScenario`).
"""

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from progrl.benchmarks.customers import HasScenario
from progrl.config.users import LlmUser as LlmConfig
from progrl.dialogue.calls import parsed_call
from progrl.dialogue.chat import call_in, signature, without_thoughts
from progrl.dialogue.messages import Message, ToolCall, ToolSpec
from progrl.dialogue.users import UserReply, UserView
from progrl.errors import MalformedAction, UserFault
from progrl.seeds import Seed
from progrl.users.contracts import Profile
from progrl.users.human import HumanUser
from progrl.users.llm_endpoint import Endpoint

SEEDS = 2**31  # endpoints take 32 bits
GREETING = "Hi! How can I help you today?"
ENDS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")
_END = re.compile("|".join(map(re.escape, ENDS)))
_TOOLS = """\
You can use the tools below, one at a time. A call is a message of this form and no other words; \
the agent does not see it, and you are then told what it returned:
<tool_call>
{"name": "the tool's name", "arguments": {"argument": "value"}}
</tool_call>
"""


Ask = Callable[[str], Awaitable[str]]
"""Shows a person what the agent said, or what a tool returned, and returns the line they type."""


class ScenarioUser:
    """A language model that plays a scenario, as the benchmark's own simulation does.

    Args:
        config: the section `user` of the configuration.
        project: folder that the cache's is relative to.
        benchmark: tells the model of its part.

    Raises:
        ConfigurationError: the key's variable is not set, or the client is not installed.
    """

    def __init__(self, config: LlmConfig, project: Path, benchmark: HasScenario) -> None:
        self.endpoint = Endpoint(config, project)
        self._benchmark = benchmark
        self.replies = self.broken_forms = 0

    async def reply(
        self, history: Sequence[Message], view: UserView, profile: Profile
    ) -> UserReply:
        """The model's words or its call; it leaves with one of the benchmark's marks.

        Raises:
            UserFault: no answer came, or two that cannot be used.
        """
        prompt = self._prompt(history, view)
        seed = Seed(f"user={view.seed}").child("reply", len(history))
        content = await self.endpoint.ask(prompt, seed.value % SEEDS)
        self.replies += 1
        try:
            return self._read(content)
        except MalformedAction as error:
            self.broken_forms += 1
            said = f"Your message cannot be used: {error}. Write it again."
        again = [*prompt, _message("assistant", content), _message("user", said)]
        content = await self.endpoint.ask(again, seed.child("again").value % SEEDS)
        try:
            return self._read(content)
        except MalformedAction as error:
            self.broken_forms += 1
            raise UserFault(f"two replies of the user's model cannot be used: {error}") from None

    def _prompt(self, history: Sequence[Message], view: UserView) -> list[dict[str, str]]:
        """The conversation from the user's side."""
        tools = self._benchmark.user_tools
        told = "\n".join([_TOOLS, *map(signature, tools)]) if tools else ""
        system = f"{self._benchmark.brief(view)}\n\n{told}".strip()
        messages = [_message("system", system), _message("user", GREETING)]
        for message in history:
            if message.call is not None:
                call = {"name": message.call.name, "arguments": dict(message.call.arguments)}
                asked = f"<tool_call>\n{json.dumps(call)}\n</tool_call>"
                answer = f"<tool_response>\n{message.content}\n</tool_response>"
                messages += [_message("assistant", asked), _message("user", answer)]
            else:
                role = {"user": "assistant", "assistant": "user"}[message.role]
                messages.append(_message(role, message.content))
        return messages

    def _read(self, content: str) -> UserReply:
        """Raises MalformedAction, in words for the model."""
        plain = without_thoughts(content).strip()
        action = call_in(plain, self._benchmark.user_tools)
        if isinstance(action, ToolCall):
            return UserReply("", "inform", calls=(action,))
        words = " ".join(_END.sub(" ", plain).split())
        leaves = _END.search(plain) is not None
        if not words and not leaves:
            raise MalformedAction("it is empty")
        return UserReply(words, "leave" if leaves else "inform", leaves)

    def spent(self) -> dict[str, float]:
        """Replies, how often the model failed its form, and the endpoint's account."""
        return {
            "replies": self.replies,
            "broken_forms": self.broken_forms,
            **self.endpoint.figures(),
        }

    def close(self) -> None:
        """Close the connections."""
        self.endpoint.close()


class PersonUser:
    """A person, who besides words types `/call tool key=value` for a tool of the user's own.

    Args:
        begin: tells the person of an episode's part in it, and returns who asks for the answers.
        tools: the user's own.
    """

    def __init__(self, begin: Callable[[UserView], Ask], tools: Sequence[ToolSpec]) -> None:
        self._begin, self._tools = begin, tuple(tools)

    async def reply(
        self, history: Sequence[Message], view: UserView, profile: Profile
    ) -> UserReply:
        """The person's words or call; a call that is none is asked for again."""
        heard = list(history)
        if len(history) <= 2:
            self._ask = self._begin(view)
        last = heard[-1]
        if last.call is not None:
            heard[-1] = Message("tool", f"[{last.call.name} on your side] {last.content}")
        while True:
            reply = await HumanUser(self._ask).reply(heard, view, profile)
            command, _, rest = reply.text.partition(" ")
            if command != "/call":
                return reply
            try:
                return UserReply("", "inform", calls=(parsed_call(rest, self._tools),))
            except MalformedAction as error:
                heard = [*history, Message("tool", f"error: {error}")]


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}
