"""The SDK in a real browser: ledger in IndexedDB, locks across tabs, what the network sees."""

from __future__ import annotations

import json
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
from tests.web.pages.browser import PATIENCE, Profile, new_context

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--in-process-gpu",
    "--renderer-process-limit=1",
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


@pytest.fixture(scope="module")
def forgetful(chromium: Any) -> Iterator[Profile]:
    made = Profile(chromium)
    yield made
    made.context.close()


@pytest.fixture
def browser(forgetful: Profile) -> Iterator[Any]:
    """A profile without a past."""
    yield forgetful.context
    forgetful.forget()


@pytest.fixture
def new_profile(chromium: Any) -> Iterator[Any]:
    """A profile that was never used, with every setting as it comes."""
    context = new_context(chromium)
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
    assert collector.arrived.wait(90)
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
    """And a browser that keeps its record says so."""
    receipts = []
    for allowed in (False, True):
        browser = playwright.chromium.launch_persistent_context(tmp_path / "profile", **launch)
        browser.set_default_timeout(PATIENCE * 1000)
        tab = opened(browser, collector)
        receipts.append(run(tab, collector))
        if allowed:
            check_persisted(browser, tab, collector)
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


EVICT = """
    await new Promise((resolve, reject) => {
        const request = indexedDB.deleteDatabase("deniable");
        request.onsuccess = resolve;
        request.onerror = request.onblocked = reject;
    });
"""


def test_ten_evictions_are_ten_draws(browser: Any, collector: Collector) -> None:
    """What the docs say of a browser that clears its data: each time a new device, with a new budget."""
    tab = opened(browser, collector)
    for _ in range(10):
        assert run(tab, collector, EVICT + "return client.budget();")["spent"] == "0"
        assert run(tab, collector)["fresh"]
        assert run(tab, collector, "return client.budget();")["spent"] == "3/2"
    assert len({body[8:24] for body in collector.bodies}) == 10


def test_the_record_is_asked_for_before_anything_is_written(new_profile: Any, collector: Collector) -> None:
    tab = opened(new_profile, collector)
    assert run(tab, collector, "return client.state();") == {"optedOut": False, "remembers": False, "persisted": False}
    asked = """
        const { BrowserStore } = await import("/deniable.js");
        const persist = navigator.storage.persist.bind(navigator.storage);
        let kept = "not asked";
        navigator.storage.persist = async () => {
            kept = await new BrowserStore().read();
            return persist();
        };
        await client.answer({ smoke: "yes", bread: "rye" });
        return kept === undefined ? "nothing was written" : kept;
    """
    assert run(tab, collector, asked) == "nothing was written"
    assert run(tab, collector, "return client.persist();") is False, "a profile that is thrown away is promised nothing"


def check_persisted(browser: Any, tab: Any, collector: Collector) -> None:
    """The state follows what the browser promises, once it is allowed to."""
    assert run(tab, collector, "return client.state();")["persisted"] is False
    session = browser.new_cdp_session(tab)
    granted = {"permissions": ["durableStorage"], "origin": collector.page.rstrip("/")}
    session.send("Browser.grantPermissions", granted)
    assert run(tab, collector, "return client.persist();") is True
    assert run(tab, collector, "return client.state();")["persisted"] is True


def test_a_question_that_nobody_answers_holds_nothing_up(browser: Any, collector: Collector) -> None:
    tab = opened(browser, collector)
    tab.evaluate("navigator.storage.persist = () => new Promise(() => undefined); undefined")
    assert run(tab, collector, "return client.persist();") == "unknown"
    tab.evaluate("delete navigator.storage.persist; navigator.storage.persisted = undefined; undefined")
    assert run(tab, collector, "return client.state();")["persisted"] == "unknown"


def test_blocked_storage_names_the_remedy(
    playwright: Any, launch: dict[str, Any], collector: Collector, tmp_path: Path
) -> None:
    """A browser whose settings allow no site to keep data."""
    settings = tmp_path / "profile" / "Default" / "Preferences"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"profile": {"default_content_setting_values": {"cookies": 2}}}), encoding="ascii")
    browser = playwright.chromium.launch_persistent_context(tmp_path / "profile", **launch)
    browser.set_default_timeout(PATIENCE * 1000)
    tab = opened(browser, collector)
    for code in (ANSWER, "return client.deliver().catch(refused);"):
        refusal = run(tab, collector, code)
        assert refusal["kind"] == "storage"
        assert "allow cookies and site data for this site" in refusal["message"]
    assert collector.to_the_service == []
    browser.close()


def holding(tab: Any, collector: Collector) -> str:
    """All that a page of the same origin finds in IndexedDB, whatever wrote it there."""
    found: str = tab.evaluate(
        """(async () => {
            const plain = (_, value) =>
                value instanceof Map || value instanceof Uint8Array ? [value.constructor.name, ...value] : value;
            const found = [];
            for (const { name, version } of await indexedDB.databases()) {
                const database = await new Promise((resolve, reject) => {
                    const request = indexedDB.open(name);
                    request.onsuccess = () => resolve(request.result);
                    request.onerror = reject;
                });
                for (const table of database.objectStoreNames) {
                    const store = database.transaction(table).objectStore(table);
                    for (const ask of [store.getAllKeys(), store.getAll()]) {
                        found.push(await new Promise((resolve) => (ask.onsuccess = () => resolve(ask.result))));
                    }
                }
                found.push(name, version);
                database.close();
            }
            return JSON.stringify(found, plain);
        })()"""
    )
    return found


RESTORE = """
    const { BrowserStore } = await import("/deniable.js");
    const store = new BrowserStore();
    if (!window.copy) {
        await client.answer({ smoke: "yes", bread: "rye" });
        window.copy = structuredClone(await store.read());
        for (const own of window.copy.surveys.values()) {
            own.submissions = [];
            own.key = { epoch: 0, key: new Uint8Array(32).fill(7) };
        }
        window.copy.groups.clear();
    }
    await store.update(() => structuredClone(window.copy));
"""


def test_another_page_of_the_origin_learns_nothing_of_what_was_sent(browser: Any, collector: Collector) -> None:
    """It reads all of IndexedDB and tries every answer. The device begins with the same key each time."""
    tab, other = opened(browser, collector), opened(browser, collector)
    tab.evaluate("Date.now = () => 1.8e12; undefined")  # when it was answered is not the question
    run(tab, collector, RESTORE)
    waiting, after, reports = set(), set(), set()
    for smoke, bread in [("yes", "rye"), ("no", "rye"), ("yes", "パン"), ("no", "パン")] * 6:
        run(tab, collector, RESTORE)
        collector.replies = [503]
        values = json.dumps({"smoke": smoke, "bread": bread})
        receipt = run(tab, collector, f"return client.answer({values}).then(plain, refused);")
        report = receipt["bytes"][24:]
        held = holding(other, collector)
        body = ",".join(map(str, receipt["bytes"]))
        assert held.count(body) == 1
        waiting.add(held.replace(body, "the waiting bytes"))
        reports.add((smoke, bread, *report))
        assert run(tab, collector, "return client.deliver();") == 0
        after.add(holding(other, collector))
    # A report that is a function of what is kept and the answer has one form for each of the four answers. Drawn six
    # times each, all of them agree by chance once in 1e19 runs.
    assert len(reports) > 4
    assert len(waiting) == 1
    assert len(after) == 1


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
    """Every seventh vector: Node draws them all."""
    check = """
        const { loadProtocol, RandomBits, sha256, concat, hex } = await import("/deniable.js");
        const { cases } = await (await fetch("/test/vectors.json")).json();
        const number = (n) => new Uint8Array(new BigUint64Array([BigInt(n)]).buffer);
        const name = new TextEncoder().encode("deniable-vector-v1");
        const seeded = (seed, block = 0) =>
          new RandomBits((bytes) => bytes.set(sha256(concat(name, number(seed), number(block++)))), 32);
        const entries = (record) => Object.entries(record).map(([name, value]) => [name, answer(value)]);
        const whole = (label) => Object.keys(label).join() === "integer" && BigInt(label.integer);
        const read = (label) => whole(label) || Object.fromEntries(entries(label));
        const one = (label) => (typeof label === "object" ? read(label) : label);
        const answer = (label) => (Array.isArray(label) ? label.map(answer) : one(label));
        let [same, all] = [0, 0];
        for (const { spec, answers, first, words, reports, bytes } of cases) {
          const protocol = loadProtocol(spec);
          for (let i = 0; i < words.length; i += 7, all++) {
            const report = hex(protocol.privatize(answer(answers[i % answers.length]), seeded(first + i)));
            same += report === reports.slice(2 * i * bytes, 2 * (i + 1) * bytes);
          }
        }
        return [same, all];
    """
    same, every = run(opened(browser, collector), collector, check)
    assert same == every >= 5_000
