"""A real server of the OpenAI protocol on loopback, and a proxy before it that breaks things."""

import contextlib
import http.client
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

from progrl.config.users import LlmUser

Reply = Callable[[dict[str, Any]], str]
FAULTS = ("drop", "429", "500", "slow", "garbage", "truncated", "never")


class Server(ThreadingHTTPServer):
    """Answers by `reply`; keeps what it was asked, with the times at which each was under way."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, reply: Reply, key: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Model)
        self.reply, self.key = reply, key
        self.asked: list[dict[str, Any]] = []
        self.spans: list[tuple[float, float]] = []
        self.usage = True

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is gone is no error here."""

    def tokens(self) -> tuple[int, int]:
        """Read and written, over all that was answered."""
        read = sum(_read(body) for body in self.asked)
        return read, sum(len(self.reply(body).split()) for body in self.asked)

    def most_at_once(self) -> int:
        """The most requests that were under way at the same time."""
        marks = sorted([(s, 1) for s, _ in self.spans] + [(e, -1) for _, e in self.spans])
        now = most = 0
        for _, change in marks:
            now += change
            most = max(most, now)
        return most


def _read(body: dict[str, Any]) -> int:
    return sum(len(message["content"].split()) for message in body["messages"])


class _Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        pass

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers["content-length"]))

    def answer(self, status: int, content: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def refuse(self, status: int, text: str) -> None:
        self.answer(status, json.dumps({"error": {"message": text}}).encode())


class _Model(_Quiet):
    server: Server

    def do_POST(self) -> None:
        start = time.monotonic()
        body = json.loads(self.body())
        server, given = self.server, self.headers["authorization"]
        if self.path != "/v1/chat/completions":
            self.refuse(404, "no such path")
            return
        if server.key and given != f"Bearer {server.key}":
            self.refuse(401, f"Incorrect API key provided: {given}")
            return
        try:
            content = server.reply(body)
        finally:
            server.asked.append(body)
            server.spans.append((start, time.monotonic()))
        value: dict[str, Any] = {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": content},
                }
            ],
        }
        if server.usage:
            read, written = _read(body), len(content.split())
            value["usage"] = {
                "prompt_tokens": read,
                "completion_tokens": written,
                "total_tokens": read + written,
            }
        self.answer(200, json.dumps(value).encode())


class Proxy(ThreadingHTTPServer):
    """Hands requests on to `upstream`; by `rate` it does one of `FAULTS` instead, and counts."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, upstream: Server, rate: float, seed: int = 1, slow: float = 0.1) -> None:
        super().__init__(("127.0.0.1", 0), _Fault)
        self.upstream, self.rate, self.slow = upstream, rate, slow
        self.done: Counter[str] = Counter()
        self.lock, self.random = threading.Lock(), Random(seed)
        self.ended = threading.Event()
        self.kinds: tuple[str, ...] = FAULTS

    base_url = Server.base_url
    handle_error = Server.handle_error

    def draw(self) -> str:
        with self.lock:
            bad = self.random.random() < self.rate
            kind = self.random.choice(self.kinds) if bad else "none"
            self.done[kind] += 1
            return kind

    def shutdown(self) -> None:
        self.ended.set()
        super().shutdown()


class _Fault(_Quiet):
    server: Proxy

    def do_POST(self) -> None:
        body, kind = self.body(), self.server.draw()
        match kind:
            case "drop":
                self.close_connection = True
            case "429" | "500":
                self.refuse(int(kind), "not now")
            case "garbage":
                self.answer(200, b"<html>it works</html>", "text/html")
            case "never":
                self.server.ended.wait(30)
                self.close_connection = True
            case _:
                if kind == "slow":
                    time.sleep(self.server.slow)
                self.hand_on(body, cut=kind == "truncated")

    def hand_on(self, body: bytes, cut: bool) -> None:
        line = http.client.HTTPConnection(*self.server.upstream.server_address[:2], timeout=30)  # type: ignore[arg-type]
        line.request("POST", self.path, body, {"authorization": self.headers["authorization"]})
        came = line.getresponse()
        content = came.read()
        line.close()
        if not cut:
            self.answer(came.status, content)
            return
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2])
        self.close_connection = True


@contextlib.contextmanager
def serving(server: ThreadingHTTPServer) -> Iterator[None]:
    """Serve while the block runs."""
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def helpful(body: dict[str, Any]) -> str:
    """What an able model answers: it follows the last message of the prompt to the letter."""
    prompt = body["messages"][1]["content"]
    acts = re.findall(r"^Allowed acts: (.*?)\. You ", prompt, re.M)[0].split(", ")
    facts = dict(re.findall(r"^- (.*?): (.*)$", prompt, re.M))
    wanted = re.findall(r"^Now: The agent asks for: (.*?)\. Tell", prompt, re.M)
    text = {
        "confirm": "yes , go ahead",
        "correct": "no , that is not it",
        "unknown": "i do not know that",
        "thank": "thank you , bye",
        "leave": "this takes too long , bye",
        "wait": "take your time",
    }.get(acts[0], "please go on")
    if wanted:
        text = " , ".join(facts[label] for label in wanted[0].split(", "))
    return json.dumps({"act": acts[0], "text": text, "done": acts[0] in {"thank", "leave"}})


def settings(base_url: str, **changes: Any) -> LlmUser:
    """The section `user` for tests."""
    return LlmUser.model_validate(
        {
            "kind": "llm",
            "family": "a",
            "base_url": base_url,
            "model": "able",
            "key_variable": "",
            "temperature": 0.7,
            "max_tokens": 100,
            "concurrency": 8,
            "timeout": 5.0,
            "retries": 2,
            "cache": "answers",
            "price_in": 2.0,
            "price_out": 10.0,
            **changes,
        }
    )
