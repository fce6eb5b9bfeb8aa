"""Run the examples of a page while the site is built, so that no number in the docs is typed by hand.

    ```python exec           the code, then what it printed
    ```python exec hide      what it printed, without the code
    ```python exec silent    the code, without what it printed
    ```python exec markdown  what it printed, as a part of the page: for tables

The blocks of a page share one namespace, in order. `figure("name.png", alt="...")` saves matplotlib's
current figure and shows it below the block, whatever the options; `matplotlibrc` beside this file sets its
look. A warning is an error, and an error
stops the build with the page, the block and the traceback. Pages run side by side, each in a process of its own
(`rendered.py`), and only if something that they read has changed.
"""

from __future__ import annotations

import base64
import io
import json
import linecache
import logging
import os
import posixpath
import re
import subprocess
import sys
import textwrap
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import chdir, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils.meta import get_data

from deniable.errors import IgnoredColumns

OPENING = re.compile(r"(?P<indent>[ ]*)(?P<fence>`{3,}|~{3,})(?P<info>[^`]*)")
IMAGE = re.compile(r"[\w-]+\.(png|svg)")
OPTIONS = {"hide", "silent", "markdown"}
STYLE = Path(__file__).with_name("matplotlibrc")
RENDERED = Path(__file__).with_name("rendered.py")
ROOT = Path(__file__).parents[2]
STARTED: dict[str, tuple[str, Future[dict[str, Any]]]] = {}
"""Pages whose examples run now: their text and what comes of it."""


class Block(NamedTuple):
    """A fenced block: lines[start:stop] with its fences, and the text between them."""

    start: int
    stop: int
    info: str
    text: str
    indent: str


def fenced_blocks(lines: list[str]) -> Iterator[Block]:
    """The outermost fenced blocks; what is quoted inside a longer fence is text, not a block."""
    at = 0
    while at < len(lines):
        opening = OPENING.fullmatch(lines[at])
        start, at = at, at + 1
        if opening is None:
            continue
        fence = opening["fence"]
        closing = re.compile(rf"[ ]*{re.escape(fence)}{fence[0]}*[ ]*")
        while at < len(lines) and not closing.fullmatch(lines[at]):
            at += 1
        if at == len(lines):
            raise ValueError(f"the block opened by {lines[start].strip()!r} is never closed")
        at += 1
        margin = re.compile(f"[ ]{{0,{len(opening['indent'])}}}")
        text = "\n".join(margin.sub("", line, count=1) for line in lines[start + 1 : at - 1])
        yield Block(start, at, opening["info"].strip(), text, opening["indent"])


def run_block(code: str, namespace: dict[str, Any], name: str) -> str:
    """Execute `code` and return what it printed; `name` stands for the file in tracebacks."""
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    printed = io.StringIO()
    with redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", IgnoredColumns)
        exec(compile(code, name, "exec", dont_inherit=True), namespace)
    return printed.getvalue()


def fenced(text: str, language: str) -> str:
    """`text` in a fence that is longer than any run of backticks in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def run_page(markdown: str, where: str, save: Callable[[str, bytes], str]) -> str:
    """The page with its executed blocks replaced; `save(name, image)` returns the link to an image.

    A page may go to another directory; the next page begins where this one did.
    """
    with chdir("."):
        return _run_page(markdown, where, save)


def _run_page(markdown: str, where: str, save: Callable[[str, bytes], str]) -> str:
    os.environ.setdefault("MPLBACKEND", "Agg")
    os.environ.setdefault("MATPLOTLIBRC", str(STYLE))
    images: list[str] = []

    def figure(name: str, alt: str) -> None:
        import matplotlib.pyplot as plt

        if not IMAGE.fullmatch(name):
            raise ValueError(f"a figure is called like 'bars.png' or 'bars.svg', not {name!r}")
        buffer = io.BytesIO()
        plt.gcf().savefig(buffer, format=name[-3:], dpi=150, bbox_inches="tight")
        plt.close()
        images.append(f"![{alt}]({save(name, buffer.getvalue())})")

    namespace: dict[str, Any] = {"__name__": "__main__", "figure": figure}
    lines = markdown.split("\n")
    page: list[str] = []
    copied = count = 0
    for block in fenced_blocks(lines):
        words = block.info.split()
        if words[:2] != ["python", "exec"]:
            continue
        count += 1
        options = set(words[2:])
        name = f"{where}, block {count}"
        if options - OPTIONS:
            raise PluginError(f"{name}: unknown option {min(options - OPTIONS)!r}; use 'hide', 'silent' or 'markdown'")
        try:
            printed = run_block(block.text, namespace, name)
        except (Exception, SystemExit) as error:
            own = error.__traceback__ and error.__traceback__.tb_next and error.__traceback__.tb_next.tb_next
            story = "".join(traceback.format_exception(type(error), error, own))
            raise PluginError(f"{name} failed\n{story}") from error
        shown = [] if options & {"hide", "markdown"} else [fenced(block.text, "python")]
        if printed.strip() and "silent" not in options:
            shown.append(printed.rstrip() if "markdown" in options else fenced(printed, "text"))
        shown += images
        images.clear()
        page += lines[copied : block.start]
        page += [*textwrap.indent("\n\n".join(shown), block.indent).split("\n"), ""]
        copied = block.stop
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
    return "\n".join(page + lines[copied:])


def on_config(config: MkDocsConfig) -> None:
    """MkDocs calls this first. `--quiet` silences warnings before `--strict` can count them: let it hear them."""
    logger = logging.getLogger("mkdocs")
    if config.strict and logger.level > logging.WARNING:
        logger.setLevel(logging.WARNING)


def on_files(files: Files, config: MkDocsConfig) -> None:
    """MkDocs calls this when it knows all pages: start those with examples."""
    STARTED.clear()
    cache = Path(config.config_file_path).parent / ".docs_cache"
    pool = ThreadPoolExecutor(os.cpu_count())
    for file in files.documentation_pages():
        markdown, _ = get_data(file.content_string)
        if "python exec" in markdown:
            STARTED[file.src_uri] = markdown, pool.submit(_rendered, markdown, file.src_uri, cache)
    pool.shutdown(wait=False)


def _rendered(markdown: str, source: str, cache: Path) -> dict[str, Any]:
    cache.mkdir(exist_ok=True)
    file = cache / f"{source.replace('/', '+')}.json"
    command = [sys.executable, str(RENDERED), source, str(file)]
    environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ, "PYTHONPATH": python_path()}
    pipes: dict[str, Any] = {"stderr": subprocess.PIPE, "text": True, "encoding": "utf-8"}
    done = subprocess.run(command, cwd=ROOT, env=environment, input=markdown, **pipes)
    if done.returncode:
        raise PluginError(done.stderr)
    entry: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return entry


def python_path() -> str:
    """Modules of the project's root, such as the benchmarks, can be imported by pages."""
    return os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """MkDocs calls this for each page, before it renders it."""
    source = page.file.src_uri
    started, result = STARTED.get(source, (None, None))
    if result is None:
        return run_page(markdown, source, lambda name, _: name)
    if started != markdown:
        raise PluginError(f"{source}: another plugin has changed the page before its examples ran")
    entry = result.result()
    for name, image in entry["images"].items():
        uri = f"assets/generated/{posixpath.splitext(source)[0]}/{name}"
        files.append(File.generated(config, uri, content=base64.b64decode(image)))
    text: str = entry["markdown"]
    return text
