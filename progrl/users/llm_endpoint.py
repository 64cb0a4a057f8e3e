"""A language model behind an endpoint that speaks the OpenAI protocol.

Requests run in an event loop of their own, in a thread: they go on while the caller's loop is busy
with an engine's step, and their time-outs measure the endpoint alone.
"""

import asyncio
import contextlib
import logging
import os
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from progrl.config.users import LlmUser as LlmConfig
from progrl.errors import ConfigurationError, UserFault
from progrl.extras import install_line
from progrl.files import digest
from progrl.seeds import Seed
from progrl.users.llm_breaker import Breaker, CircuitOpen
from progrl.users.llm_cache import Answer, AnswerCache

if TYPE_CHECKING:
    from openai import AsyncOpenAI

logger = logging.getLogger(__name__)
FAILURES = 12  # running, until the circuit opens: at 30% independent faults one in two million
PAUSE = 2.0
BACK_OFF, LONGEST = 0.25, 20.0  # seconds
AGAIN = frozenset({408, 409, 425, 429})  # and all from 500

Messages = Sequence[Mapping[str, str]]


class _Failed(Exception):
    """A try that may be repeated, with its cause in a word, and the wait the endpoint asked for."""

    def __init__(self, kind: str, detail: str, wait: float = 0.0) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind, self.wait = kind, wait


@dataclass(slots=True)
class Account:
    """What an endpoint was asked, what it cost, and how it failed.

    Attributes:
        answers: given to callers: `sent` and answered, or from the cache.
        cached: of these, without a request: the same was asked before.
        requests: sent, failed ones included.
        failures: requests that failed, by cause.
        tokens_in: read by the model; `tokens_out`: written. Of answered requests alone.
        unmetered: answers whose endpoint did not count the tokens.
        lost: callers that got none; several may have waited for one request.
    """

    answers: int = 0
    cached: int = 0
    requests: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    tokens_in: int = 0
    tokens_out: int = 0
    unmetered: int = 0
    lost: int = 0


class Endpoint:
    """Asks a model, within bounds of time, number and patience.

    Equal requests are one request: whoever asks again gets the first answer, while it is under way,
    from memory, or from the cache on disk. The key comes from the environment alone and stands in
    no message.

    Args:
        config: the user's section.
        project: folder that the cache's is relative to.
        whose: model it is, in messages: the user's or the agent's.

    Raises:
        ConfigurationError: the key's variable is not set, or the client is not installed.
    """

    def __init__(self, config: LlmConfig, project: Path, whose: str = "user") -> None:
        self._config = config
        self._whose = whose
        self._key = _key(config, whose)
        self._cache = AnswerCache(project / config.cache)
        self._flying: dict[str, asyncio.Task[Answer]] = {}
        self._room = asyncio.Semaphore(config.concurrency)
        self._breaker = Breaker(FAILURES, PAUSE)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client = _client(config, self._key)
        self._starting = threading.Lock()
        self.account = Account()

    async def ask(self, messages: Messages, seed: int) -> str:
        """The model's answer to `messages`; `seed` is the sampling's.

        Raises:
            UserFault: the endpoint refused, or failed more often than it is asked again.
        """
        future = asyncio.run_coroutine_threadsafe(self._answer(messages, seed), self._running())
        return await asyncio.wrap_future(future)

    def figures(self) -> dict[str, float]:
        """The account as numbers; `cost` by the configured prices."""
        a, c = self.account, self._config
        return {
            "answers": a.answers,
            "cached": a.cached,
            "requests": a.requests,
            **{f"failures/{kind}": a.failures[kind] for kind in sorted(a.failures)},
            "lost": a.lost,
            "circuit_opened": self._breaker.opened,
            "tokens_in": a.tokens_in,
            "tokens_out": a.tokens_out,
            "unmetered": a.unmetered,
            "cost": (a.tokens_in * c.price_in + a.tokens_out * c.price_out) / 1e6,
        }

    def close(self) -> None:
        """Close the connections and end the thread; the next question starts another."""
        with self._starting:
            loop, self._loop = self._loop, None
        if loop is not None:
            with contextlib.suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(self._stop(), loop).result(5)
            loop.call_soon_threadsafe(loop.stop)

    async def _stop(self) -> None:
        for task in self._flying.values():
            task.cancel()
        await asyncio.gather(*self._flying.values(), return_exceptions=True)
        self._breaker.close()
        await self._client.close()
        self._client = _client(self._config, self._key)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._room = asyncio.Semaphore(self._config.concurrency)
                threading.Thread(
                    target=self._loop.run_forever, name="progrl-user", daemon=True
                ).start()
            return self._loop

    # All below runs in the endpoint's own loop.

    async def _answer(self, messages: Messages, seed: int) -> str:
        request = self._request(messages, seed)
        key = digest({"base_url": self._config.base_url, **request})
        answer, cached = self._cache.get(key), True
        if answer is None:
            task = self._flying.get(key)
            cached = task is not None
            if task is None:
                task = asyncio.create_task(self._fetch(key, request))
                self._flying[key] = task
                task.add_done_callback(lambda _: self._flying.pop(key, None))
            try:
                answer = await asyncio.shield(task)
            except UserFault:
                self.account.lost += 1
                raise
        self.account.answers += 1
        self.account.cached += cached
        return answer.content

    def _request(self, messages: Messages, seed: int) -> dict[str, Any]:
        config = self._config
        return {
            "model": config.model,
            "messages": [dict(message) for message in messages],
            "temperature": config.temperature,
            "max_tokens": config.max_tokens,
            "seed": seed,
        }

    async def _fetch(self, key: str, request: dict[str, Any]) -> Answer:
        """Try, and try again after a growing wait whose jitter is the request's own."""
        node = Seed(f"back_off={key}")
        tries = self._config.retries + 1
        for number in range(tries):
            try:
                probe = await self._breaker.admit()
                async with self._room:
                    self._breaker.check(probe)
                    answer = await self._send(request)
                await self._cache.put(key, answer)
                return answer
            except (_Failed, CircuitOpen) as error:
                if number + 1 == tries:
                    raise UserFault(
                        f"the {self._whose}'s model at {self._config.base_url} gave no answer in "
                        f"{tries} tries, the last: {error}"
                    ) from None
                least = error.wait if isinstance(error, _Failed) else 0.0
            jitter = 0.5 + node.child("try", number).random().random()
            await asyncio.sleep(min(LONGEST, max(least, BACK_OFF * 2**number * jitter)))
        raise AssertionError  # the last try returns or raises

    async def _send(self, request: dict[str, Any]) -> Answer:
        """One request, with its verdict for the breaker and the account."""
        self.account.requests += 1
        try:
            answer = await self._post(request)
        except _Failed as error:
            self.account.failures[error.kind] += 1
            self._breaker.failed(str(error))
            raise
        except UserFault:
            self.account.failures["refused"] += 1
            self._breaker.succeeded()
            raise
        except BaseException as error:
            self._breaker.failed(type(error).__name__)
            raise
        self._breaker.succeeded()
        return answer

    async def _post(self, request: dict[str, Any]) -> Answer:
        import openai

        seconds = self._config.timeout
        try:
            async with asyncio.timeout(seconds):
                completion = await self._client.chat.completions.create(**request)
        except (TimeoutError, openai.APITimeoutError):
            raise _Failed("timeout", f"no whole answer in {seconds:g} s") from None
        except openai.APIStatusError as error:
            status, said = error.status_code, self._clean(error.message)
            if status in AGAIN or status >= 500:
                raise _Failed(f"status_{status}", said, _wait(error.response.headers)) from None
            raise UserFault(
                f"the {self._whose}'s model was refused (status {status}): {said}"
            ) from None
        except openai.APIConnectionError as error:
            raise _Failed("connection", self._clean(repr(error.__cause__ or error))) from None
        except (openai.OpenAIError, ValueError, TypeError, AttributeError) as error:
            raise _Failed("garbage", self._clean(repr(error))) from None
        return self._read(completion)

    def _read(self, completion: Any) -> Answer:
        """The client does not check what it is sent: a page of HTML comes through as it is."""
        try:
            content = completion.choices[0].message.content
        except (AttributeError, IndexError, TypeError):
            raise _Failed("garbage", "the answer is no chat completion") from None
        if content is not None and not isinstance(content, str):
            raise _Failed("garbage", "the answer's content is no text")
        usage = getattr(completion, "usage", None)
        counts = [getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")]
        metered = all(isinstance(count, int) for count in counts)
        read, written = (int(count or 0) for count in counts) if metered else (0, 0)
        self.account.unmetered += not metered
        self.account.tokens_in += read
        self.account.tokens_out += written
        return Answer(content or "", read, written)

    def _clean(self, text: str) -> str:
        """Endpoints quote the key that they refuse."""
        text = text.replace(self._key, "[key]") if self._key else text
        return text if len(text) <= 300 else text[:300] + " ..."


def _key(config: LlmConfig, whose: str) -> str:
    if not config.key_variable:
        return ""
    key = os.environ.get(config.key_variable, "").strip()
    if not key:
        raise ConfigurationError(
            f"{whose}.key_variable: the environment variable {config.key_variable} is not set; the "
            f"key of the {whose}'s model is to stand there."
        )
    return key


def _client(config: LlmConfig, key: str) -> "AsyncOpenAI":
    try:
        import openai
    except ModuleNotFoundError:
        raise ConfigurationError(
            f"A model behind an endpoint needs the package openai: {install_line('llm')}"
        ) from None
    for name in ("openai", "httpx", "httpx2", "httpcore"):  # a line a request
        logging.getLogger(name).setLevel(logging.WARNING)
    return openai.AsyncOpenAI(
        base_url=config.base_url,
        api_key=key or "none",
        organization="",
        project="",
        timeout=config.timeout,
        max_retries=0,
    )


def _wait(headers: Mapping[str, str]) -> float:
    """Seconds that the endpoint asks to wait, 0 where it does not say."""
    try:
        return max(0.0, float(headers.get("retry-after", "0")))
    except ValueError:
        return 0.0
