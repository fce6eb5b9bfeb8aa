"""Whatever a file holds, its readers return or raise a `DeniableError`."""

from __future__ import annotations

import json
from contextlib import suppress

from hypothesis import given, strategies as st

from deniable._files import parse_json
from deniable.cli.read_channels import Names, build_form, read_channel, read_vector
from deniable.errors import DeniableError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["1/2", "a", "channel", "all", "line", "1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["kind", "version", "rows", "inputs", "outputs", "denominator", "adjacency", "graph", "line"]
            ),
            inner,
            max_size=7,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_no_json_breaks_the_readers(tmp_path_factory, value):
    base = {"kind": "channel", "version": 1, "rows": [["1"]], "inputs": ["a"], "outputs": ["a"], "denominator": "1"}
    path = tmp_path_factory.getbasetemp() / "fuzz.json"
    for content in (value, {**base, **value} if isinstance(value, dict) else [value]):
        path.write_text(json.dumps(content))
        for read in (read_channel, lambda source: read_vector(source, Names.of(("a", "1"), "output"), "counts")):
            with suppress(DeniableError):
                read(str(path))


@given(st.text(alphabet='{}[],"\n;\t=x1/.-eNa', max_size=40))
def test_no_text_breaks_the_readers(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.txt"
    path.write_text(content)
    names = Names.of(("x", 1), "output")
    for read in (
        lambda: read_channel(str(path)),
        lambda: read_vector(str(path), names, "counts"),
        lambda: read_vector(content, names, "counts"),
        lambda: build_form("binary:" + content, lambda source: ([], [], [])),
        lambda: parse_json(content, "here"),
    ):
        with suppress(DeniableError, OSError):
            read()
