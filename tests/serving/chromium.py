"""Chromium without a window, driven by its DevTools protocol.

Not by Playwright, as benchmarks drive it (`progrl.benchmarks.browser`): that is an extra, and these
tests run with what `make setup` installs. The two share how the program is found, no more: agents
act by what stands in an accessibility tree, tests by selectors.
"""

import base64
import itertools
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

from progrl.benchmarks.contracts import program

CHROMIUM = program("chromium")
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync "
    "--remote-debugging-port=0"
)
PATIENCE = 30.0


class Page:
    """One tab, in a profile of its own."""

    def __init__(self, browser: "Browser", target: str, session: str) -> None:
        self.problems: list[str] = []
        self._browser, self._target, self._session = browser, target, session
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)

    def open(self, address: str) -> None:
        self.call("Page.navigate", url=address)

    def reload(self) -> None:
        self.js("window.before = true")
        self.call("Page.reload")
        self.until("window.before === undefined && document.readyState === 'complete'")

    def js(self, expression: str) -> Any:
        done = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in done:
            raise AssertionError(f"{expression}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until the expression is true."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                if self.js(f"Boolean({expression})"):
                    return
            except AssertionError:
                pass  # the page is on its way to another
            time.sleep(0.05)
        raise AssertionError(f"never true: {expression}\n{self.text('body')}\n{self.problems}")

    def text(self, selector: str) -> str:
        return str(self.js(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def fill(self, selector: str, value: str) -> None:
        """Type as a person does."""
        self.js(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=value)

    def choose(self, selector: str, value: str) -> None:
        self.js(
            f"{{ const box = document.querySelector({json.dumps(selector)});"
            f"box.value = {json.dumps(value)};"
            "box.dispatchEvent(new Event('change', {bubbles: true})); }"
        )

    def click(self, selector: str) -> None:
        found = f"document.querySelector({json.dumps(selector)})"
        self.until(f"{found} && !{found}.disabled && {found}.checkVisibility()")
        self.js(f"{found}.click()")

    def enter(self) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind, key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r",
            )  # fmt: skip

    def show(self, width: int, height: int, dark: bool = False) -> None:
        """The size of the window, and which colours the person prefers."""
        mode = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[mode])
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip

    def shot(self, file: Path, whole: bool = True) -> None:
        taken = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(taken["data"]))


class Browser:
    """A browser with any number of people."""

    def __init__(self, address: str) -> None:
        self._socket = connect(address, max_size=2**26, compression=None)
        self._numbers = itertools.count(1)
        self._pages: dict[str, Page] = {}

    def person(self) -> Page:
        """A tab that shares neither storage nor cookies with another."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)
        id_ = target["targetId"]
        session = self.call("Target.attachToTarget", targetId=id_, flatten=True)["sessionId"]
        page = Page(self, id_, session)
        self._pages[session] = page
        return page

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        self._socket.send(json.dumps(message | ({"sessionId": session} if session else {})))
        while True:
            answer = json.loads(self._socket.recv(timeout=PATIENCE))
            if answer.get("id") == number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])
            self._note(answer)

    def _note(self, event: dict[str, Any]) -> None:
        page = self._pages.get(event.get("sessionId", ""))
        if page is None:
            return
        match event["method"]:
            case "Runtime.exceptionThrown":
                page.problems.append(str(event["params"]["exceptionDetails"]))
            case "Log.entryAdded" if event["params"]["entry"]["level"] == "error":
                page.problems.append(event["params"]["entry"]["text"])

    def close(self) -> None:
        self._socket.close()


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """A browser whose profile lies in `folder`; it ends with the block."""
    assert CHROMIUM is not None
    with (folder / "chromium.log").open("w") as log:
        process = subprocess.Popen(
            [CHROMIUM, *FLAGS.split(), f"--user-data-dir={folder / 'profile'}", "about:blank"],
            stdout=log,
            stderr=log,
        )
        try:
            ready = folder / "profile" / "DevToolsActivePort"
            end = time.monotonic() + PATIENCE
            while not (ready.exists() and ready.read_text().count("\n")):
                assert time.monotonic() < end and process.poll() is None, "Chromium did not start"
                time.sleep(0.05)
            port, path = ready.read_text().split("\n")[:2]
            browser = Browser(f"ws://127.0.0.1:{port}{path}")
            try:
                yield browser
            finally:
                browser.close()
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
