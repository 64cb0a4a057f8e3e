"""What every engine's conversation is: ids that were read and sampled, one sample at a time."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from progrl.agent.engines.contracts import Sample, SamplingParams
from progrl.errors import EngineFault


class BaseConversation(ABC):
    """A conversation of an engine.

    Args:
        vocabulary: ids are below it.
        window: most tokens of a conversation.

    Attributes:
        ids: all that was read and sampled so far.
        busy: a sample is being waited for.
    """

    def __init__(self, vocabulary: int, window: int) -> None:
        self.ids: list[int] = []
        self.busy = False
        self._vocabulary, self._window = vocabulary, window
        self._closed = False

    def extend(self, ids: Sequence[int]) -> None:
        """Append ids to be read before the next sample.

        Raises:
            EngineFault: an id is not of the model's vocabulary, or a sample is in flight.
        """
        self._check_usable()
        if ids and not (min(ids) >= 0 and max(ids) < self._vocabulary):
            raise EngineFault(
                f"Token ids outside of the model's vocabulary (0 to {self._vocabulary - 1}) "
                "were to be read: codec and model do not belong together."
            )
        self.ids += ids

    async def sample(self, params: SamplingParams) -> Sample:
        """Sample a message; its ids become part of the conversation.

        Where the task is cancelled meanwhile, the conversation is as it was before the call.

        Raises:
            EngineFault: the engine failed, or there is nothing to go on from.
        """
        self._check_usable()
        if not self.ids:
            raise EngineFault("A conversation must be extended before it can be sampled.")
        if params.max_tokens < 1 or params.temperature < 0:
            raise EngineFault(f"{params}: max_tokens must be positive, temperature not negative.")
        room = self._window - len(self.ids)
        if room <= 0:
            return Sample([], [], "window")
        self.busy = True
        try:
            sample = await self._sample(params, room)
        finally:
            self.busy = False
        self.ids += sample.ids
        return sample

    def close(self) -> None:
        """Nothing more is read or sampled; idempotent."""
        self._closed = True

    @abstractmethod
    async def _sample(self, params: SamplingParams, room: int) -> Sample:
        """A message of at most `room` tokens at the end of `ids`."""

    def _check_usable(self) -> None:
        if self._closed:
            raise EngineFault("The conversation is closed.")
        if self.busy:
            raise EngineFault("The conversation is already being sampled.")
