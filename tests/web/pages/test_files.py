"""The files of the pages: served under a strict policy, cached by their content, small, and part of the wheel."""

from __future__ import annotations

import gzip
import http.client
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from deniable.collect.server.pages import FOLDERS, TYPES, WORDS, Files, files, web_folder
from deniable.words import LANGUAGES
from tests.web.pages.browser import Log
from tests.web.pages.service import Service

ROOT = Path(__file__).parents[3]
MOST_BYTES, MOST_WORDS = 230_000, 27_000
"""Of all files but the words, and of the words of one language."""


def ask(service: Service, path: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=90)
    connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    reply = connection.getresponse()
    content = reply.status, {name.lower(): value for name, value in reply.getheaders()}, reply.read()
    connection.close()
    return content


PAGES = ["/", "/dashboard", "/new", "/plan", "/r/" + "0" * 64, "/s/" + "0" * 64, "/dashboard/" + "0" * 64]


@pytest.mark.parametrize("path", PAGES)
def test_pages_have_a_strict_policy_and_nothing_inline(service: Service, path: str) -> None:
    status, headers, body = ask(service, path)
    assert status == 200
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'" if path == "/" else "default-src 'self'")
    assert "unsafe" not in policy
    assert headers["referrer-policy"] == "no-referrer"
    text = body.decode()
    assert not re.search(r"<style|style=|\son\w+=|javascript:", text)
    assert re.findall(r"<script(?![^>]* src=)", text) == []
    assert not re.search(r"https?://", text)
    for source in re.findall(r'(?:src|href)="([^"]*web/[^"]*)"', text):
        depth = path.count("/") - 1
        assert source.startswith("../" * depth + "web/")
        assert ask(service, "/" + source.removeprefix("../"))[0] == 200


def test_files_are_cached_by_their_content(service: Service) -> None:
    version = files().version
    status, headers, body = ask(service, f"/web/{version}/deniable.js")
    assert (status, headers["cache-control"]) == (200, "public, max-age=31536000, immutable")
    assert body == (ROOT / "web" / "deniable.js").read_bytes()
    status, current, packed = ask(service, "/web/current/deniable.js", Accept_Encoding="gzip")
    assert (status, current["cache-control"], current["content-encoding"]) == (200, "no-cache", "gzip")
    assert gzip.decompress(packed) == body
    assert current["etag"] != headers["etag"]
    assert current["access-control-allow-origin"] == "*"
    for tag, expected in ((headers["etag"], 304), ('"another"', 200)):
        assert ask(service, "/web/current/deniable.js", If_None_Match=tag)[0] == expected


@pytest.mark.parametrize(
    "path",
    [
        "/web/current/memory.js",
        "/web/current/package.json",
        "/web/current/pages/survey.html",
        "/web/current/test/vectors.json",
        "/web/current/..%2Fpyproject.toml",
        "/web/0123456789abcdef/deniable.js",
        "/web/current/pages/none.js",
    ],
)
def test_nothing_else_is_served(service: Service, path: str) -> None:
    assert ask(service, path)[0] == 404


@pytest.mark.parametrize("path", ["/nothere", "/not/here"])
def test_a_person_at_a_wrong_address_gets_a_page(service: Service, path: str) -> None:
    status, headers, body = ask(service, path, Accept="text/html,application/xhtml+xml,*/*;q=0.8")
    assert (status, headers["content-type"]) == (404, "text/html; charset=utf-8")
    up = "../" * (path.count("/") - 1)
    assert f'<a href="{up or "./"}">All surveys' in body.decode()
    assert f'href="{up}web/{files().version}/pages/style.css"' in body.decode()
    assert headers["content-security-policy"].startswith("default-src 'self'")
    assert ask(service, path, Accept="*/*")[1]["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/v1", "/v1/nothere", "/" + "a/" * 20])
def test_programs_get_a_problem_document(service: Service, path: str) -> None:
    status, headers, _ = ask(service, path, Accept="text/html")
    assert (status, headers["content-type"]) == (404, "application/problem+json")


def test_everything_together_is_small() -> None:
    known = files()
    total = sum(len(file.packed) for name, file in known.files.items() if not name.startswith(WORDS))
    assert total < MOST_BYTES
    assert all(len(known.files[f"{WORDS}/{language}.json"].packed) < MOST_WORDS for language in LANGUAGES)
    assert len(known.files) > 20


def test_a_change_of_any_file_changes_the_version(tmp_path: Path) -> None:
    for folder in FOLDERS:
        (tmp_path / folder).mkdir(exist_ok=True)
    (tmp_path / "deniable.js").write_text("1")
    (tmp_path / "pages" / "a.css").write_text("1")
    before = Files.read(tmp_path).version
    (tmp_path / "pages" / "a.css").write_text("2")
    assert Files.read(tmp_path).version != before


def test_all_that_modules_import_is_served() -> None:
    known = set(files().files)
    for name in known:
        if name.endswith(".js") and not name.startswith("vendor"):
            text = files().files[name].plain.decode()
            for target in re.findall(r'(?:from |import\()"(\.[^"]+)"', text):
                folder = Path(name).parent
                found = (folder / target).as_posix().replace("pages/../", "").replace("./", "")
                assert found in known, f"{name} imports {target}"


@pytest.mark.parametrize(("path", "least"), [("/s/" + "0" * 64, 15), ("/dashboard", 12), ("/plan", 5)])
def test_a_page_names_all_modules_that_it_loads(
    service: Service, open_tab: Callable[[str], Any], log: Log, path: str, least: int
) -> None:
    """Modules that are found one inside the other are fetched one after the other, over a slow line for seconds."""
    named = re.findall(r'<link rel="(?:module)?preload"[^>]* href="[./]*([^"]+)">', ask(service, path)[2].decode())
    open_tab(service.address + path).wait_for_selector("input, [role=alert]")
    loaded = {url.removeprefix(f"{service.address}/") for url in log.urls(".js")}
    assert len(loaded) >= least
    assert set(named) == loaded
    assert len(named) == len(set(named))


@pytest.mark.parametrize(
    ("path", "says"), [("/s/" + "0" * 64, "Loading"), ("/dashboard", "Dashboard"), ("/plan", "Loading")]
)
def test_a_page_says_something_before_its_scripts_are_there(
    service: Service, profile: Any, path: str, says: str
) -> None:
    profile.route("**/*.js", lambda route: None)  # never answered
    tab = profile.new_page()
    tab.goto(service.address + path, wait_until="commit")
    expect(tab.locator("main")).to_contain_text(says)


def test_the_wheel_has_what_is_served() -> None:
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    included = build["wheel"]["force-include"]
    web = web_folder()
    assert build["wheel"]["packages"] == ["src/deniable"]  # which has the words
    for name in files().files:
        if name.startswith(f"{WORDS}/"):
            assert (ROOT / "src" / "deniable" / name).is_file()
            continue
        source = (web / name).relative_to(ROOT).as_posix()
        places = [target + source.removeprefix(own) for own, target in included.items() if source.startswith(own)]
        assert places == [f"deniable/{source}"]
    assert not any("test" in source for source in included)


def test_the_vendored_library_has_its_licence() -> None:
    assert "MIT" in (ROOT / "web" / "vendor" / "uPlot.LICENSE").read_text(encoding="utf-8")
    assert set(TYPES) >= {".js", ".css"}
