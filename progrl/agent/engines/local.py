"""The engine in process: continuous batching over slots, each conversation read once.

Conversations hold a seat from their first sample until they are closed. One driver task steps all
requests in flight together: it reads what is new, samples a token for each, lets those that are
finished go on, and takes in whoever came meanwhile. Where more conversations sample than there are
seats, the rest wait; if nobody else can move, the conversation that has rested longest gives up its
seat and is read again later.
"""

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil
import torch
from transformers import PreTrainedModel

from progrl.agent.engines.batch import Batch, Statistics
from progrl.agent.engines.compiled import CompiledDecoder
from progrl.agent.engines.contracts import Sample, SamplingParams
from progrl.agent.engines.conversation import BaseConversation
from progrl.agent.engines.decoder import Decoder
from progrl.agent.model import load_model
from progrl.errors import ConfigurationError, EngineFault

_LOG = logging.getLogger(__name__)
_PATIENCE = 8  # turns of the event loop before a resting conversation loses its seat


@dataclass(slots=True, eq=False)
class _Request:
    conversation: "LocalConversation"
    params: SamplingParams
    future: asyncio.Future[Sample]


class LocalConversation(BaseConversation):
    """A conversation of a LocalEngine."""

    def __init__(self, engine: "LocalEngine") -> None:
        super().__init__(engine.vocabulary, engine.window)
        self.seat: int | None = None
        self._engine = engine
        self._request: _Request | None = None

    def close(self) -> None:
        """Free the seat; idempotent."""
        if not self._closed:
            super().close()
            if self._request is not None:
                self._request.future.cancel()
                self._engine.abandon(self._request)
            self._engine.release(self)

    async def _sample(self, params: SamplingParams, room: int) -> Sample:
        request = _Request(self, params, asyncio.get_running_loop().create_future())
        self._request = request
        try:
            self._engine.submit(request)
            return await request.future
        except BaseException:
            self._engine.abandon(request)
            raise
        finally:
            self._request = None


class LocalEngine:
    """Samples from a Qwen- or Llama-type model in this process.

    Args:
        model: whose weights are copied.
        slots: conversations that are held at once.
        window: most tokens of a conversation; the model's own limit by default.
        dtype: of weights and cache, "float32" or "bfloat16".
        share: conversations that open alike are computed once until they part.
        compile: the layers are compiled from C++; needs a C++ compiler and float32.

    Raises:
        ConfigurationError: the model's architecture is not known, the window exceeds its limit, or
            so many slots would not fit into the memory that is available.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        *,
        slots: int = 128,
        window: int | None = None,
        dtype: Literal["float32", "bfloat16"] = "float32",
        share: bool = True,
        compile: bool = False,
    ) -> None:
        decoder = (CompiledDecoder if compile else Decoder)(model, getattr(torch, dtype))
        self.window = decoder.window if window is None else window
        if self.window > decoder.window:
            raise ConfigurationError(
                f"agent.window: {self.window} exceeds the {decoder.window} positions of the "
                "model. Set it lower."
            )
        _check_room(slots, self.window, decoder.slot_bytes(self.window))
        self.vocabulary = decoder.vocabulary
        self._dtype = dtype
        self._batch = Batch(decoder, slots, share)
        self._holders: dict[int, LocalConversation] = {}  # by seat
        self._free = list(range(slots))[::-1]
        self._requests: dict[int, _Request] = {}  # by seat
        self._waiting: list[_Request] = []
        self._driver: asyncio.Task[None] | None = None

    @property
    def statistics(self) -> Statistics:
        """Work done since the engine was made."""
        return self._batch.statistics

    def open(self) -> LocalConversation:
        """A new, empty conversation; it takes a seat with its first sample."""
        return LocalConversation(self)

    def load_weights(self, folder: Path) -> None:
        """Replace the weights by those of a model folder; all caches are forgotten.

        Raises:
            CheckpointError: the folder is incomplete or damaged.
            EngineFault: samples are in flight, or the model is of another shape.
        """
        self.set_weights_from(load_model(folder, self._dtype))

    def rest(self) -> None:
        """Nothing: the caches are filled anew when there are new weights."""

    def set_weights_from(self, model: PreTrainedModel) -> None:
        """Replace the weights by a copy of a live model's; all caches are forgotten.

        Raises:
            EngineFault: samples are in flight, or the model is of another shape.
        """
        if self._requests or self._waiting:
            raise EngineFault("Weights cannot be replaced while samples are in flight.")
        self._batch.decoder.take(model)
        self._forget()

    def submit(self, request: _Request) -> None:
        """Queue a request and see to it that the driver runs."""
        loop = asyncio.get_running_loop()
        if self._driver is None or self._driver.done():
            self._driver = loop.create_task(self._drive())
        elif self._driver.get_loop() is not loop:
            raise EngineFault("The engine is sampling in another event loop.")
        self._waiting.append(request)

    def abandon(self, request: _Request) -> None:
        """Forget a request that nobody waits for any more; idempotent.

        What was sampled so far is dropped, even where the last token had come already.
        """
        if request in self._waiting:
            self._waiting.remove(request)
            return
        conversation = request.conversation
        if conversation.seat is not None:
            self._requests.pop(conversation.seat, None)
            self._batch.stop(conversation.seat, len(conversation.ids))

    def release(self, conversation: LocalConversation) -> None:
        """Take a conversation's seat from it."""
        seat = conversation.seat
        if seat is not None:
            conversation.seat = None
            del self._holders[seat]
            self._batch.free(seat)
            self._free.append(seat)

    async def _drive(self) -> None:
        rest = 0
        try:
            while self._requests or self._waiting:
                self._admit(may_evict=rest > _PATIENCE)
                rest = 0 if self._requests else rest + 1
                with torch.inference_mode():
                    finished = self._batch.step() if self._requests else []
                for seat, sample in finished:
                    request = self._requests.pop(seat)
                    if not request.future.done():
                        request.future.set_result(sample)
                await asyncio.sleep(0)
        except Exception as error:
            _LOG.exception("The local engine failed.")
            self._fail(f"The local engine failed: {error!r}")
        finally:
            # There are requests left only where the driver itself was cancelled.
            self._fail("The local engine was stopped.")

    def _fail(self, message: str) -> None:
        requests = [*self._requests.values(), *self._waiting]
        if not requests:
            return
        self._requests, self._waiting = {}, []
        self._forget()
        for request in requests:
            if not request.future.done():
                request.future.set_exception(EngineFault(message))

    def _forget(self) -> None:
        for conversation in list(self._holders.values()):
            self.release(conversation)

    def _admit(self, may_evict: bool) -> None:
        """Give waiting requests seats, in the order they came."""
        blocked = []
        for request in self._waiting:
            conversation = request.conversation
            if conversation.seat is None:
                if not self._free and may_evict:
                    self._evict()
                    may_evict = False
                if not self._free:
                    blocked.append(request)
                    continue
                conversation.seat = self._free.pop()
                self._holders[conversation.seat] = conversation
            ids = conversation.ids
            self._batch.start(conversation.seat, ids, request.params, self.window - len(ids))
            self._requests[conversation.seat] = request
        self._waiting = blocked

    def _evict(self) -> None:
        """Take the seat of the conversation that has rested longest."""
        resting = [seat for seat, c in self._holders.items() if not c.busy]
        if resting:
            self.release(self._holders[min(resting, key=self._batch.used)])


def _check_room(slots: int, window: int, each: int) -> None:
    """Raise ConfigurationError if full windows in all slots would not fit into free memory."""
    free = int(psutil.virtual_memory().available)
    if slots * each > free:
        raise ConfigurationError(
            f"engine.slots: {slots} conversations of up to {window} tokens would take "
            f"{slots * each:,} bytes, and {free:,} are available. Set it to {free // each} at "
            "most, or agent.window lower."
        )
