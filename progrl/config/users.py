"""Who plays the user."""

from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from progrl.config.base import Count, Folder, Natural, NonNegative, Positive, Section

Family = Literal["a", "b", "all"]


class ScriptedUser(Section):
    """The user by rule: dialogue acts from the history, wordings from the reply memory."""

    kind: Literal["scripted"]
    family: Family
    """Family of profiles from which an episode's profile is drawn."""


class StaticUser(Section):
    """Nobody answers in GRPO's episodes: the opening query tells the whole goal, which stays as it
    is. Dialogues of `generate`, probes and evaluation have the scripted user all the same."""

    kind: Literal["static"]
    family: Family
    """Family of profiles of the scripted user of dialogues and probes."""


class LlmUser(Section):
    """A language model behind an endpoint that speaks the OpenAI protocol; see docs/users.md."""

    kind: Literal["llm"]
    family: Family
    """Family of profiles from which an episode's profile is drawn."""
    base_url: str
    """Address of the endpoint up to and including its version, as http://127.0.0.1:8000/v1."""
    model: str
    """Name of the model, as the endpoint knows it."""
    key_variable: str
    """Environment variable that holds the key; empty where the endpoint asks for none."""
    temperature: NonNegative
    """Of sampling; 0 is greedy."""
    max_tokens: Count
    """Most tokens of an answer, thoughts included."""
    concurrency: Count
    """Most requests under way at a time."""
    timeout: Positive
    """Seconds after which a request is given up."""
    retries: Natural
    """Further tries after one that failed, before the episode is lost."""
    cache: Folder
    """Folder in which answers are kept by content, relative to that of params.yaml."""
    price_in: NonNegative
    """Of a million tokens read, in the currency that the cost is to be told in."""
    price_out: NonNegative
    """Of a million tokens written."""

    @model_validator(mode="after")
    def _address(self) -> Self:
        address = urlsplit(self.base_url)
        if address.scheme not in {"http", "https"} or not address.hostname:
            raise ValueError("base_url: an address that begins with http:// or https://")
        if address.username or address.password or address.query:
            raise ValueError("base_url: no key may stand in the address; use key_variable")
        return self


UserConfig = Annotated[ScriptedUser | StaticUser | LlmUser, Field(discriminator="kind")]
