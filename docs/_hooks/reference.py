"""The reference: one page per public module, made from the docstrings while the site is built.

The pages have no files. `on_files` writes a page for each module in `PAGES`: the names that it exports, each as a block
that mkdocstrings replaces by signature, parameters, examples and methods. `Prepared` is an extension of griffe, which
reads the source for mkdocstrings: it puts examples into code blocks, makes lists of data sheets, and links each name to
its line of the source, which `on_post_build` writes as one page per file.
"""

from __future__ import annotations

import ast
import hashlib
import html
import importlib
import inspect
import json
import re
import typing
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from types import ModuleType
from typing import Any

import griffe
import pygments
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "deniable"
PAGES = (
    *("protocols", "protocols.frequency", "protocols.longitudinal", "protocols.numeric", "protocols.profiles"),
    *("protocols.graphs", "domains", "planning", "surveys", "results", "postprocess", "audit", "privacy"),
    *("channels", "channels.hypothesis", "channels.inference", "design", "collect", "collect.client", "collect.server"),
    *("collect.stores", "files", "files.spark", "conformance", "randomness", "exact", "errors"),
)
"""The public modules below `deniable`, in the order of the navigation."""

_ROW = r"^(?=.{{10}} \S){0}[A-Z][a-z-]+(?: [a-z]+)?{1} +{0}\S.*\n(?:^ {{9,}}\S.*\n)*{1}"
SHEET = re.compile(f"(?:{_ROW.format('(?:', ')')}){{3,}}", re.MULTILINE)
ROW = re.compile(_ROW.format("(", ")"), re.MULTILINE)
EXAMPLE = re.compile(r"(?<=\n\n)(?:>>> .*\n(?:\S.*\n|[ ]+\S.*\n)*)")
LEXER, FORMATTER = PythonLexer(), HtmlFormatter(linenos="table", lineanchors="L", anchorlinenos=True)


# -- which name is on which page -----------------------------------------------------------------------------


def exports(page: str) -> dict[str, Any]:
    """What a public module exports, by name: `__all__`, or what it defines."""
    module = importlib.import_module(f"deniable.{page}" if page else "deniable")
    own = [name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__]
    names = getattr(module, "__all__", [name for name in own if not name.startswith("_")])
    return {name: getattr(module, name) for name in names if not name.startswith("__")}


def is_described(thing: Any) -> bool:
    """Whether a name has an entry of its own: a class or a function of this project."""
    return inspect.isclass(thing) or (inspect.isroutine(inspect.unwrap(thing)) and not inspect.ismethod(thing))


def path_of(thing: Any) -> str:
    found = inspect.unwrap(thing)
    return f"{found.__module__}.{found.__qualname__}"


@cache
def homes() -> dict[str, str]:
    """The page that describes each class or function: of those that export it, the one closest to its module."""
    found: dict[str, list[str]] = {}
    for page in PAGES:
        for thing in exports(page).values():
            if is_described(thing):
                found.setdefault(path_of(thing), []).append(page)
    return {path: max(pages, key=partial(_closeness, path)) for path, pages in found.items()}


def _closeness(path: str, page: str) -> int:
    return len(page) if path.startswith(f"deniable.{page}.") else 0


def first_sentence(thing: Any) -> str:
    paragraph = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    return "" if paragraph.startswith(">>>") else paragraph


# -- the pages -----------------------------------------------------------------------------------------------


def page_text(page: str) -> str:
    """The Markdown of one page."""
    options = {"members": "false", "show_root_heading": "false", "show_root_toc_entry": "false"}
    listed = "".join(f"\n      {name}: {value}" for name, value in options.items())
    return "\n\n".join([f"# `deniable.{page}`", f"::: deniable.{page}\n    options:{listed}", *_entries(page)]) + "\n"


def _entries(page: str) -> Iterator[str]:
    things = exports(page)
    elsewhere = []
    for name in sorted(things, key=lambda name: (not inspect.isclass(things[name]), name.lower())):
        thing = things[name]
        if isinstance(thing, ModuleType):
            continue
        if is_described(thing) and str(thing.__module__).startswith("deniable"):
            if homes()[path_of(thing)] == page:
                yield f"::: {path_of(thing)}"
            else:
                elsewhere.append(f"- `{name}`: see [`deniable.{homes()[path_of(thing)]}.{name}`][{path_of(thing)}]")
        else:
            elsewhere.append(f"- `{name}`: {_described(thing)}")
    if elsewhere:
        yield "## Other names"
        yield "\n".join(elsewhere)


def _described(thing: Any) -> str:
    """What a constant or an alias is, in a few words."""
    if inspect.ismethod(thing):
        return f"the same as [`{thing.__qualname__}`][{path_of(thing)}]. {first_sentence(thing)}"
    if typing.get_origin(thing):
        return f"the type `{str(thing).replace('collections.abc.', '')}`"
    if isinstance(thing, dict | tuple | frozenset):
        listed = sorted(thing) if isinstance(thing, frozenset) else thing
        return "the names " + ", ".join(f"`{getattr(entry, '__name__', entry)}`" for entry in listed)
    return f"a ready-made `{type(thing).__name__}`: `{thing}`"


def index_text() -> str:
    """The Markdown of the first page: the names that `import deniable as dn` gives."""
    rows = []
    for name, thing in exports("").items():
        if isinstance(thing, ModuleType):
            page = thing.__name__.removeprefix("deniable.")
            rows.append(f"| [`dn.{name}`]({page}.md) | The module `{thing.__name__}` |")
        elif inspect.ismethod(thing):
            rows.append(f"| `dn.{name}` | {_described(thing).replace('the', 'The', 1)} |")
        else:
            text = html.escape(first_sentence(thing), quote=False).replace("|", "&#124;")
            rows.append(f"| [`dn.{name}`][{path_of(thing)}] | {text} |")
    listed = "\n".join(f"- [`deniable.{page}`]({page}.md)" for page in PAGES)
    return INDEX.format(pages=listed, rows="\n".join(rows))


INDEX = """# Reference

One page per module, made from the code itself. `help(name)` in Python shows the same text, and the tests run its
examples.

## Modules

{pages}

## `deniable`

Usually imported as `import deniable as dn`. The most used names are here.

| name | is |
| --- | --- |
{rows}
"""


def on_files(files: Files, config: MkDocsConfig) -> None:
    """MkDocs calls this when it knows all pages."""
    texts = {"index": index_text()} | {page: page_text(page) for page in PAGES}
    for name, text in texts.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    for path in sorted((PACKAGE / "schemas").glob("*.json")):
        files.append(File.generated(config, f"schemas/{path.name}", content=path.read_text(encoding="utf-8")))


# -- docstrings ----------------------------------------------------------------------------------------------


def prepared(docstring: str) -> str:
    """A docstring whose examples are code blocks and whose data sheet is a list."""
    text = EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}```\n", docstring + "\n")
    return SHEET.sub(lambda found: _sheet(found[0]), text)


def _sheet(text: str) -> str:
    rows = []
    for name, content in ROW.findall(text):
        shown = re.sub("`([^`]+)`", r"<code>\1</code>", html.escape(" ".join(content.split()), quote=False))
        rows.append(f"<dt>{name}</dt><dd>{shown}</dd>")
    return f'<dl class="sheet">{"".join(rows)}</dl>\n'


class Prepared(griffe.Extension):
    """Prepares docstrings for Markdown, and adds data sheets and links to the source."""

    def on_class(self, *, cls: griffe.Class, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        """Give a named tuple, and a class that is built by `__new__`, the signature that callers see."""
        fields = [one for one in cls.attributes.values() if one.annotation is not None]
        if "NamedTuple" in map(str, cls.bases):
            own = [griffe.Parameter(one.name, annotation=one.annotation, default=one.value) for one in fields]
            cls.set_member("__init__", griffe.Function("__init__", parameters=griffe.Parameters(*own)))
        elif "__new__" in cls.members and "__init__" not in cls.members and not cls.resolved_bases:
            made = cls.members["__new__"]
            if isinstance(made, griffe.Function):
                cls.set_member("__init__", griffe.Function("__init__", parameters=made.parameters))

    def on_object(self, *, obj: griffe.Object, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        if obj.docstring is None:
            return
        text = prepared(obj.docstring.value)
        parent = obj.parent
        if parent is not None and parent.is_module and isinstance(obj, griffe.Class | griffe.Function):
            text += self._sheet_of(obj) + self._link(obj)
        obj.docstring.value = text

    def _sheet_of(self, obj: griffe.Object) -> str:
        """The data sheet of a mechanism stands at the head of its file; its class is the first public one there."""
        module = obj.module
        first = next(
            (one for one in module.classes.values() if not one.is_alias and not one.name.startswith("_")), None
        )
        if obj is not first or module.docstring is None or module.is_package:
            return ""
        found = SHEET.search(docstring_of(Path(str(module.filepath))))
        return "\n" + _sheet(found[0]) if found and found[0].startswith("Law ") else ""

    def _link(self, obj: griffe.Object) -> str:
        file = Path(str(obj.filepath)).relative_to(PACKAGE.parent)
        address = f"source/{file.with_suffix('.html').as_posix()}#L-{obj.lineno}"
        return f'\n<a class="source" href="{address}">Source: {file.as_posix()}, line {obj.lineno}</a>\n'


def docstring_of(path: Path) -> str:
    """The docstring of a file, as it is written there."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "") + "\n"


# -- the source ----------------------------------------------------------------------------------------------

FRAME = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<style>body {{ background: white; color: black; font-family: sans-serif; margin: 1rem; }}
pre {{ line-height: 1.4; }} a {{ color: inherit; }}
:target {{ background: #fd6; }} {style}</style></head>
<body><h1>{title}</h1>{code}</body></html>
"""


def on_post_build(config: MkDocsConfig) -> None:
    """MkDocs calls this at the end: write the highlighted source, which links of the reference open."""
    cache_file = ROOT / ".docs_cache" / "source.json"
    known: dict[str, list[str]] = json.loads(cache_file.read_text("utf-8")) if cache_file.exists() else {}
    pages = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE.parent).as_posix()
        text = path.read_text(encoding="utf-8")
        digest = hashlib.sha256(f"{pygments.__version__} {text}".encode()).hexdigest()
        if known.get(name, [""])[0] != digest:
            known[name] = [digest, pygments.highlight(text, LEXER, FORMATTER)]
        pages[name] = known[name]
    cache_file.parent.mkdir(exist_ok=True)
    cache_file.write_text(json.dumps(pages), encoding="utf-8")
    style = FORMATTER.get_style_defs()
    for name, (_, code) in pages.items():
        page = Path(config.site_dir) / "reference" / "source" / Path(name).with_suffix(".html")
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(FRAME.format(title=name, style=style, code=code), encoding="utf-8")
