"""The SDK in a real browser: ledger in IndexedDB, locks across tabs, what the network sees."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from deniable.protocols import GRR, OUE
from deniable.surveys import Budget, Epochs, Longitudinal, Question, Survey, Terms
from deniable.surveys.terms import read_time
from tests.web.collector import Collector, collecting

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
ELSEWHERE = "example.test"

# One epoch of a hundred years: no test runs across its end.
START = read_time("2020-01-01T00:00:00Z")
SURVEY = Survey(
    "habits",
    [
        Question("smoke", "Do you smoke?", GRR(["yes", "no"], 1)),
        Question("bread", "Which bread?", OUE(["rye", "crêpe", "パン"], "1/2")),
    ],
    Terms(
        "Example Guild",
        "to test",
        Epochs(START, 36_600 * 86_400),
        Longitudinal("none", 1),
        Budget("guild", "3/2"),
        START,
        read_time("2100-01-01T00:00:00Z"),
    ),
)

CLIENT = """
const { Client } = await import("/deniable.js");
const client = new Client({ server: SERVER, fingerprint: PINNED, attempts: 1 });
const plain = (receipt) => ({ ...receipt, bytes: Array.from(receipt.bytes ?? []) });
const refused = (error) => ({ kind: error.kind, message: error.message });
"""
ANSWER = 'return client.answer({ smoke: "yes", bread: "rye" }).then(plain, refused);'


@pytest.fixture(scope="module")
def playwright() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        absent("playwright")
    with sync_playwright() as running:
        yield running


@pytest.fixture(scope="module")
def launch() -> dict[str, Any]:
    """How to start the system's Chromium."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        absent("chromium")
    return {"executable_path": program, "args": [*FLAGS, f"--host-resolver-rules=MAP {ELSEWHERE} 127.0.0.1"]}


def absent(what: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(f"{what} is missing, and the SDK must be tested in a browser before a release")
    pytest.skip(f"{what} is not installed: the SDK is not tested in a browser here")


@pytest.fixture(scope="module")
def chromium(playwright: Any, launch: dict[str, Any]) -> Iterator[Any]:
    running = playwright.chromium.launch(**launch)
    yield running
    running.close()


@pytest.fixture
def browser(chromium: Any) -> Iterator[Any]:
    """A profile without a past."""
    context = chromium.new_context()
    yield context
    context.close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting(SURVEY) as running:
        yield running


def opened(browser: Any, collector: Collector) -> Any:
    tab = browser.new_page()
    tab.goto(collector.page)
    return tab


def script(collector: Collector, code: str, server: str | None = None) -> str:
    names = CLIENT.replace("SERVER", repr(server or collector.server)).replace("PINNED", repr(SURVEY.fingerprint))
    return f"(async () => {{ {names} {code} }})()"


def run(tab: Any, collector: Collector, code: str = ANSWER, server: str | None = None) -> Any:
    return tab.evaluate(script(collector, code, server))


def start(tab: Any, collector: Collector, code: str = ANSWER) -> None:
    """Begin without waiting; the result is then in `window.result`."""
    tab.evaluate(f"window.result = {script(collector, code)}; undefined")


def test_an_answer_leaves_as_fixed_bytes(browser: Any, collector: Collector) -> None:
    receipt = run(opened(browser, collector), collector)
    (body,) = collector.bodies
    assert receipt["state"] == "sent"
    assert bytes(receipt["bytes"]) == body
    assert len(body) == 8 + 16 + SURVEY.report_bytes
    assert body[:4] == b"DNR1"
    assert {r.path.split("/")[1] for r in collector.requests} <= {"", "v1", "deniable.js", "favicon.ico"}


def test_no_cookie_and_no_referrer_even_to_the_page_s_own_server(browser: Any, collector: Collector) -> None:
    tab = opened(browser, collector)
    tab.evaluate("document.cookie = 'who=me; path=/'; undefined")
    tab.evaluate("fetch('/v1/control')")
    (control,) = collector.to_the_service
    assert {"cookie", "referer"} <= set(control.headers), "a plain request has both, so their absence means something"
    collector.requests.clear()
    assert run(tab, collector, server=collector.page)["state"] == "sent"
    assert [request.method for request in collector.to_the_service] == ["GET", "POST"]
    for request in collector.to_the_service:
        assert "cookie" not in request.headers
        assert "referer" not in request.headers


def test_two_tabs_that_answer_at_once_are_one_submission(browser: Any, collector: Collector) -> None:
    tabs = [opened(browser, collector) for _ in range(2)]
    for tab in tabs:
        start(tab, collector)
    receipts = [tab.evaluate("window.result") for tab in tabs]
    assert len(collector.bodies) == 1
    assert sorted(receipt["fresh"] for receipt in receipts) == [False, True]
    assert run(tabs[0], collector, "return client.budget();")["spent"] == "3/2"


def test_the_same_bytes_are_sent_again_after_a_reload(browser: Any, collector: Collector) -> None:
    tab = opened(browser, collector)
    collector.replies = [503]
    assert run(tab, collector)["state"] == "queued"
    tab.reload()
    assert run(tab, collector, "return client.deliver();") == 0
    assert len(collector.bodies) == 2
    assert len(set(collector.bodies)) == 1


def test_a_tab_that_dies_while_sending_leaves_the_same_bytes_to_the_next(browser: Any, collector: Collector) -> None:
    collector.hold = threading.Event()
    tab = opened(browser, collector)
    start(tab, collector)
    assert collector.arrived.wait(20)
    tab.close()
    collector.hold.set()
    collector.hold = None
    receipt = run(opened(browser, collector), collector)
    assert (receipt["state"], receipt["fresh"]) == ("sent", False)
    assert len(collector.bodies) == 2
    assert len(set(collector.bodies)) == 1


def test_the_ledger_survives_the_browser(
    playwright: Any, launch: dict[str, Any], collector: Collector, tmp_path: Path
) -> None:
    receipts = []
    for _ in range(2):
        browser = playwright.chromium.launch_persistent_context(tmp_path / "profile", **launch)
        receipts.append(run(opened(browser, collector), collector))
        browser.close()
    assert receipts[1] | {"id": 0, "bytes": 0, "fresh": 0} == receipts[0] | {"id": 0, "bytes": 0, "fresh": 0}
    assert (receipts[1]["fresh"], receipts[1]["bytes"]) == (False, [])
    assert len(collector.bodies) == 1


def test_opted_out_means_no_request_at_all(browser: Any, collector: Collector) -> None:
    tab = opened(browser, collector)
    run(tab, collector, "return client.optOut();")
    assert run(tab, collector)["kind"] == "optedOut"
    assert run(opened(browser, collector), collector, "return client.deliver();") == 0
    assert collector.to_the_service == []


def test_withdrawal_deletes_what_was_kept(browser: Any, collector: Collector) -> None:
    tab = opened(browser, collector)
    collector.replies = [503]
    run(tab, collector)
    run(tab, collector, "return client.withdraw();")
    kept = """
        const { BrowserStore } = await import("/deniable.js");
        const show = (_, value) => (value instanceof Map ? [...value] : value);
        return JSON.stringify(await new BrowserStore().read(), show);
    """
    ledger = run(tab, collector, kept)
    assert "withdrawn" in ledger
    assert '"key"' not in ledger
    assert collector.bodies[0][8:24].hex() not in ledger
    assert run(tab, collector, "return client.deliver();") == 0
    assert len(collector.bodies) == 1


def test_cleared_storage_is_a_new_device(browser: Any, collector: Collector) -> None:
    tab = opened(browser, collector)
    run(tab, collector)
    clear = """
        await new Promise((resolve, reject) => {
            const request = indexedDB.deleteDatabase("deniable");
            request.onsuccess = resolve;
            request.onerror = request.onblocked = reject;
        });
        return client.budget();
    """
    assert run(tab, collector, clear)["spent"] == "0"
    assert run(tab, collector)["fresh"]
    ids = {body[8:24] for body in collector.bodies}
    assert len(ids) == 2


def test_a_ledger_that_cannot_be_read_fails_closed(browser: Any, collector: Collector) -> None:
    tab = opened(browser, collector)
    spoil = """
        const { BrowserStore } = await import("/deniable.js");
        await new BrowserStore().update(() => ({ version: 99 }));
    """
    run(tab, collector, spoil)
    assert run(tab, collector)["kind"] == "storage"
    assert collector.to_the_service == []


def test_an_altered_survey_is_refused(browser: Any, collector: Collector) -> None:
    collector.served = SURVEY.canonical.replace(b'"epsilon":"1/2"', b'"epsilon":"1/1"')
    refusal = run(opened(browser, collector), collector)
    assert refusal["kind"] == "spec"
    assert "altered" in refusal["message"]
    assert collector.bodies == []


def test_an_insecure_page_is_refused(browser: Any, collector: Collector) -> None:
    tab = browser.new_page()
    tab.goto(f"http://{ELSEWHERE}:{collector.port}/")
    assert tab.evaluate("isSecureContext") is False
    refusal = tab.evaluate(f"{script(collector, ANSWER)}.catch(({{ kind, message }}) => ({{ kind, message }}))")
    assert refusal["kind"] == "context"
    assert "https" in refusal["message"]
    assert collector.to_the_service == []


def test_the_browser_draws_what_python_draws(browser: Any, collector: Collector) -> None:
    check = """
        const { loadProtocol, RandomBits, sha256, concat, hex } = await import("/deniable.js");
        const { cases } = await (await fetch("/test/vectors.json")).json();
        const number = (n) => new Uint8Array(new BigUint64Array([BigInt(n)]).buffer);
        const name = new TextEncoder().encode("deniable-vector-v1");
        const seeded = (seed, block = 0) =>
          new RandomBits((bytes) => bytes.set(sha256(concat(name, number(seed), number(block++)))), 32);
        const answer = (label) => (typeof label === "object" ? BigInt(label.integer) : label);
        let [same, all] = [0, 0];
        for (const { spec, answers, first, words, reports, bytes } of cases) {
          const protocol = loadProtocol(spec);
          for (let i = 0; i < words.length; i++, all++) {
            const report = hex(protocol.privatize(answer(answers[i % answers.length]), seeded(first + i)));
            same += report === reports.slice(2 * i * bytes, 2 * (i + 1) * bytes);
          }
        }
        return [same, all];
    """
    same, every = run(opened(browser, collector), collector, check)
    assert same == every >= 12_000
