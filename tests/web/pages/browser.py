"""The system's Chromium, and a log of everything that it asks of the network."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import pytest

INSECURE = "collector.test"
"""A name for this machine that a browser does not take for it: plain http there is not secure."""
PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first is the same browser without a window and takes two thirds of the time; the SDK is tested in a whole one."""
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--in-process-gpu",
    "--renderer-process-limit=1",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    f"--host-resolver-rules=MAP {INSECURE} 127.0.0.1",
]


def missing(what: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing, and the pages must be tested in a browser before a release")
    pytest.skip(f"{what} is not installed: the pages are not tested in a browser here")


PATIENCE = 90.0
"""Seconds that a test waits for a page: four busy processes beside it are no reason to fail."""


def new_context(browser: Any, **settings: Any) -> Any:
    """A browser profile whose waits end late."""
    context = browser.new_context(**settings)
    context.set_default_timeout(PATIENCE * 1000)
    return context


@contextmanager
def chromium() -> Iterator[Any]:
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        missing("playwright")
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        missing("chromium")
    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield running
        running.close()


class Profile:
    """A browser profile that forgets: after `forget` it has no past, like a new one, which takes longer to make.

    It keeps the files of the pages, whose addresses are hashes of them.
    """

    def __init__(self, browser: Any) -> None:
        self.context = new_context(browser, viewport={"width": 1000, "height": 800})
        self._first = self.context.new_page()
        self._session = self.context.new_cdp_session(self._first)
        self._origins: set[str] = set()
        self.context.on("page", lambda tab: tab.on("framenavigated", self._visited))
        # A site that was visited often is promised that its storage stays; a new profile promises nothing.
        known = self._session.send("Target.getTargetInfo")["targetInfo"]["browserContextId"]
        never = {"permission": {"name": "persistent-storage"}, "setting": "denied", "browserContextId": known}
        browser.new_browser_cdp_session().send("Browser.setPermission", never)

    def _visited(self, frame: Any) -> None:
        scheme, _, rest = frame.url.partition("://")
        if scheme.startswith("http"):
            self._origins.add(f"{scheme}://{rest.partition('/')[0]}")

    def forget(self) -> None:
        self.context.unroute_all(behavior="ignoreErrors")
        for tab in self.context.pages:
            if tab is not self._first:
                tab.close()
        for origin in sorted(self._origins):
            self._session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        self._origins.clear()
        self.context.clear_cookies()


def eventually(tab: Any, holds: Callable[[], bool], seconds: float = PATIENCE) -> None:
    """Wait until something is so. The pages' policy forbids the way in which playwright itself would wait."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, tab.inner_text("main")
        tab.wait_for_timeout(50)


@dataclass
class Log:
    """What the page complained of; and, if asked for, what the browser's own network log says."""

    network: bool = True
    requests: dict[str, dict[str, Any]] = field(default_factory=dict)
    """With headers as they went out."""
    complaints: list[str] = field(default_factory=list)

    def watch(self, tab: Any) -> None:
        tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        tab.on("console", self._console)
        if self.network:
            session = tab.context.new_cdp_session(tab)
            session.send("Network.enable")
            session.on("Network.requestWillBeSent", self._sent)
            session.on("Network.requestWillBeSentExtraInfo", self._headers)

    def _entry(self, event: dict[str, Any]) -> dict[str, Any]:
        return self.requests.setdefault(event["requestId"], {"headers": {}})

    def _sent(self, event: dict[str, Any]) -> None:
        request = event["request"]
        self._entry(event).update(url=request["url"], method=request["method"], kind=event.get("type"))

    def _headers(self, event: dict[str, Any]) -> None:
        entry = self._entry(event)
        entry["headers"] = {name.lower(): value for name, value in event["headers"].items()}
        entry["cookies"] = event.get("associatedCookies", [])

    def _console(self, message: Any) -> None:
        # A failed load is the network's business, and a header that is for secure pages only is no fault on others.
        known = ("Failed to load resource", "Cross-Origin-Opener-Policy header has been ignored")
        if message.type == "error" and not any(text in message.text for text in known):
            self.complaints.append(message.text)

    def urls(self, part: str = "", method: str | None = None) -> list[str]:
        sent = [one for one in self.requests.values() if "url" in one]
        return [one["url"] for one in sent if part in one["url"] and method in (None, one["method"])]

    @property
    def posts(self) -> list[str]:
        return self.urls(method="POST")
