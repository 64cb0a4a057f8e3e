"""A language model as the user.

The rules decide what it may know, which acts fit, when it may leave and when its goal changes; the
model chooses among these acts and finds the words. What it answers is a function of its view and
the words of the conversation as long as its answers are kept: the episodes of a group part at what
the agent wrote, not at the user's whim.
"""

from collections.abc import Sequence
from pathlib import Path

from progrl.config.users import LlmUser as LlmConfig
from progrl.dialogue.messages import Message
from progrl.dialogue.users import UserReply, UserView
from progrl.errors import UserFault
from progrl.seeds import Seed
from progrl.users.contracts import Profile
from progrl.users.decisions import Talk
from progrl.users.llm_brief import Brief, BrokenForm, Draft, correction
from progrl.users.llm_endpoint import Endpoint

SEEDS = 2**31  # endpoints take 32 bits


class LlmUser:
    """Asks a model for each reply, and once more for one that cannot be used.

    Args:
        config: the section `user` of the configuration.
        project: folder that the cache's is relative to.

    Raises:
        ConfigurationError: the key's variable is not set, or the client is not installed.
    """

    def __init__(self, config: LlmConfig, project: Path) -> None:
        self.endpoint = Endpoint(config, project)
        self.replies = self.broken_forms = self.early_leaves = self.given_up = 0

    async def reply(
        self, history: Sequence[Message], view: UserView, profile: Profile
    ) -> UserReply:
        """The model's words; a scheduled change of the goal is announced in the task's own.

        Raises:
            UserFault: no answer came, or two that cannot be used.
        """
        talk = Talk.of(history, view)
        number = len(talk.said)
        if view.change is not None and number == view.change.at_reply:
            return UserReply(view.change.text, "change_goal")
        brief = Brief.of(talk, profile)
        seed = Seed(f"user={view.seed}").child("reply", number)
        draft = await self._draft(brief, brief.messages(profile), seed)
        self.replies += 1
        leaves = brief.must_leave or (draft.done and brief.may_leave)
        return UserReply(draft.text, draft.act, leaves)

    async def _draft(self, brief: Brief, prompt: Sequence[dict[str, str]], seed: Seed) -> Draft:
        content = await self.endpoint.ask(prompt, seed.value % SEEDS)
        why = self._wrong(brief, content)
        if isinstance(why, Draft):
            return why
        again = correction(prompt, content, why)
        content = await self.endpoint.ask(again, seed.child("again").value % SEEDS)
        try:
            draft = brief.read(content)
        except BrokenForm as error:
            self.broken_forms += 1
            self.given_up += 1
            raise UserFault(f"two replies of the user's model cannot be used: {error}") from None
        self.early_leaves += brief.early(draft)
        return draft

    def _wrong(self, brief: Brief, content: str) -> Draft | str:
        """The reply in an answer, or what is wrong with it."""
        try:
            draft = brief.read(content)
        except BrokenForm as error:
            self.broken_forms += 1
            return str(error)
        if brief.early(draft):
            self.early_leaves += 1
            return "you may not end the conversation yet, so done is false"
        return draft

    def spent(self) -> dict[str, float]:
        """Replies, how the model failed its form, and the endpoint's account.

        `early_leaves` counts replies that would have ended a conversation against the rules; they
        are asked for once more, and then do not end it.
        """
        return {
            "replies": self.replies,
            "broken_forms": self.broken_forms,
            "early_leaves": self.early_leaves,
            "given_up": self.given_up,
            **self.endpoint.figures(),
        }

    def close(self) -> None:
        """Close the connections."""
        self.endpoint.close()
