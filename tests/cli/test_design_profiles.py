"""`deniable design profiles`, and `verify` of what it saves."""

from __future__ import annotations

import json
import re
from fractions import Fraction

import pytest

from deniable.cli.design import NAMES
from deniable.protocols import GRR, load, profiles
from tests.documents import rows_of

BITS = "profile,p\nnorth,0\nsouth,0.5\nharbour,1\nisland,0.3\n"
EDGES = "one,other\nnorth,south\nsouth,harbour\n"
WIDE = "profile,a,b,c\nP1,0.2,0.3,0.5\nP2,0.5,0.3,0.2\nP3,1/3,1/3,1/3\n"
WIDE_EDGES = "one,other\nP1,P2\nP2,P3\n"


@pytest.fixture
def bits(write):
    return write(BITS, "profiles.csv"), "--edges", write(EDGES, "edges.csv"), "--epsilon", "1"


@pytest.fixture
def wide(write):
    return write(WIDE, "wide.csv"), "--edges", write(WIDE_EDGES, "wide-edges.csv"), "--epsilon", "0.2"


def test_it_shows_the_flips_the_level_and_the_baseline(run, bits):
    out = run("design", "profiles", *bits, "--mechanism", "one-bit-cluster").out
    assert re.search(r"^mechanism +OneBitCluster for 4 profiles of 2 values, 2 edges$", out, re.M)
    assert re.search(r"^epsilon +(1|0\.9999\d+) over the edges, at most 1 as asked$", out, re.M)
    assert re.search(r"^in the clear +island$", out, re.M)
    assert re.search(r"^profile +P\(1\) +reported +flip +Warner$", out, re.M)
    assert re.search(r"^north +0\.0000 +0\.1839 +0\.1839 +0\.2689$", out, re.M)
    assert re.search(r"^island +0\.3000 +0\.3000 +0\.0000 +0\.0000$", out, re.M)


def test_the_library_says_the_same(run, bits):
    found = run("design", "profiles", *bits, "--mechanism", "smooth-one-bit", "--json").json
    graph = profiles.from_csv(bits[0], bits[2])
    expected = profiles.SmoothOneBit(graph, "1")
    assert found["mechanism"] == "SmoothOneBit"
    assert [row["false"] for row in found["profiles"]] == pytest.approx(expected.flip, abs=1e-15)
    assert Fraction(found["largest"]) == expected.largest < Fraction(found["baseline"]["largest"])
    assert Fraction(found["epsilon"]["ratio"]) == expected.ratio
    assert found["epsilon"]["realized"] <= 1


def test_of_flips_and_channels_the_one_with_less_noise_is_chosen(run, write):
    edges = write("one,other\na,b\nb,c\n", "chain.csv")
    noisy = run("design", "profiles", write("profile,p\na,0.73\nb,0.18\nc,0.86\n", "three.csv"), "--edges", edges,
                "--epsilon", "0.2", "--json").json  # fmt: skip
    assert noisy["mechanism"] == "SmoothCategorical"
    assert noisy["compared"]["mechanism"] == "SmoothOneBit"
    assert noisy["noise"] < 0.7 * noisy["compared"]["noise"]
    quiet = ("design", "profiles", write("profile,p\na,0.1\nb,0.4\nc,0.6\n", "quiet.csv"), "--edges", edges,
             "--epsilon", "0.5")  # fmt: skip
    found = run(*quiet, "--json").json
    assert found["mechanism"] == "SmoothOneBit"
    assert found["noise"] < found["compared"]["noise"]
    assert re.search(
        r"^chosen +SmoothOneBit has 0\.\d+ false reports on average, SmoothCategorical 0\.", run(*quiet).out, re.M
    )
    asked = run(*quiet, "--mechanism", "smooth-categorical", "--json").json
    assert (asked["mechanism"], asked["compared"]) == ("SmoothCategorical", None)


def test_profiles_of_several_values(run, wide):
    found = run("design", "profiles", *wide, "--json").json
    expected = profiles.SmoothCategorical(profiles.from_csv(wide[0], wide[2]), "0.2")
    assert found["mechanism"] == "SmoothCategorical"
    assert found["baseline"]["mechanism"] == "KaryResponse"
    kept = [sum(p * channel.rows[x, x] for x, p in enumerate(law))
            for law, channel in zip(expected.graph.profiles, expected.channels, strict=True)]  # fmt: skip
    assert [1 - row["false"] for row in found["profiles"]] == pytest.approx(kept, abs=1e-12)
    assert max(row["largest"] for row in found["profiles"]) == pytest.approx(float(expected.largest), abs=1e-15)
    assert all(row["largest"] <= row["baseline_false"] for row in found["profiles"])
    out = run("design", "profiles", *wide).out
    assert re.search(r"^profile +false +largest +KaryResponse$", out, re.M)


def test_json_says_the_same_as_csv(run, write, bits):
    graph = {"profiles": {"north": 0, "south": 0.5, "harbour": 1, "island": 0.3},
             "edges": [["north", "south"], ["south", "harbour"]]}  # fmt: skip
    text = json.dumps(graph)
    ways = [
        run("design", "profiles", *bits, "--json").json,
        run("design", "profiles", write(text, "graph.json"), "--epsilon", "1", "--json").json,
        run("design", "profiles", "-", "--epsilon", "1", "--json", stdin=text).json,
    ]
    for found in ways:
        for step in found["trace"]:
            assert step.pop("seconds") > 0
    assert ways[0] == ways[1] == ways[2]
    assert ways[0]["trace"][0]["solver"] == "HiGHS"


def test_every_mechanism_has_a_name(run, bits):
    found = {run("design", "profiles", *bits, "--mechanism", name, "--json").json["mechanism"] for name in NAMES}
    assert found == set(profiles.MECHANISMS)


def test_what_is_saved_is_checked_there(run, write, bits, tmp_path):
    saved = tmp_path / "mechanism.json"
    run("design", "profiles", *bits, "--save", saved)
    assert run("design", "verify", saved).out.endswith("verdict  verified (proved)\n")
    spec = json.loads(saved.read_text())
    assert load(spec).spec() == spec
    # Less noise than the level needs: the same form, a false claim.
    spec["rows"][:2] = [[str(2**64), "0"], ["0", str(2**64)]]
    false = write(json.dumps(spec), "false.json")
    wrong = run("design", "verify", false, "--json", code=1).json
    assert not wrong["verified"]
    assert [check["name"] for check in wrong["checks"] if not check["holds"]] == ["epsilon"]
    assert "not verified" in run("design", "verify", false, code=1).out
    # No distribution, no table: no mechanism at all.
    spec["rows"][0][1] = "5"
    assert "sum to 2^64" in run("design", "verify", write(json.dumps(spec)), code=2).err
    assert (
        "misses domain"
        in run("design", "verify", write('{"kind": "protocol", "version": 1, "protocol": "ProfileTable"}'), code=2).err
    )
    other = write(json.dumps(GRR(2, 1).spec()), "other.json")
    assert "only profile mechanisms are shown here" in run("design", "verify", other, code=2).err


def test_what_is_saved_is_asked_in_a_survey(run, write, tmp_path):
    """From the graph to the shares of the values; 5 standard errors are exceeded once in a million seeds."""
    saved = tmp_path / "mechanism.json"
    graph = (write(WIDE, "wide.csv"), "--edges", write(WIDE_EDGES, "wide-edges.csv"))
    run("design", "profiles", *graph, "--epsilon", "1", "--mechanism", "kary-response", "--save", saved)
    question = {"id": "use", "text": "Whose, and what?", "answers": {"table": "mechanism.json"}}
    draft = {"name": "use", "owner": "Acme", "purpose": "to plan", "days": 3, "people": 900, "questions": [question]}
    made = run("survey", "new", write(json.dumps(draft), "draft.json"), "-o", tmp_path / "survey.json")
    assert "between two joined profiles: P1 and P2; P2 and P3" in made.out
    shown = run("survey", "show", tmp_path / "survey.json", "--json").json
    assert (shown["relation"], shown["terms"]["budget"]["relation"]) == ("profiles", "profiles")
    answers = [{"profile": f"P{1 + i % 3}", "value": "abc"[i % 2]} for i in range(900)]
    table = "use\n" + "".join('"' + json.dumps(one).replace('"', '""') + '"\n' for one in answers)
    run("privatize", tmp_path / "survey.json", write(table, "answers.csv"), "-o", tmp_path / "reports.parquet")
    run("tally", tmp_path / "survey.json", tmp_path / "reports.parquet", "-o", tmp_path / "tally.json")
    (found,) = run("estimate", tmp_path / "survey.json", tmp_path / "tally.json", "--json").json["questions"]
    for row, share in zip(rows_of(found), (0.5, 0.5, 0), strict=True):
        assert abs(row["value"] - share) < 5 * row["stderr"]
    other = draft | {"questions": [question | {"answers": {"table": "mechanism.json", "read": "profiles"}}]}
    assert (
        "use" in run("survey", "new", write(json.dumps(other), "other.json"), "-o", tmp_path / "other-survey.json").out
    )
    mixed = draft | {"questions": [question, {"id": "yes", "text": "Yes?", "answers": ["yes", "no"], "epsilon": "1"}]}
    refused = run("survey", "new", write(json.dumps(mixed), "mixed.json"), "-o", tmp_path / "no.json", code=2).err
    assert "ask them in separate surveys, each with a budget group of its own" in refused


@pytest.mark.parametrize(
    ("table", "edges", "more", "words"),
    [
        (BITS, EDGES, (), "--epsilon"),
        (BITS, EDGES, ("--epsilon", "0"), "must be positive"),
        (BITS, EDGES, ("--epsilon", "1", "--mechanism", "magic"), "smooth-one-bit"),
        (WIDE, WIDE_EDGES, ("--epsilon", "1", "--mechanism", "smooth-one-bit"), "2 values"),
        (BITS, None, ("--epsilon", "1"), "--edges"),
        (BITS, "north,south\nsouth,harbour\n", ("--epsilon", "1"), "header"),
        (BITS, "one,other\n", ("--epsilon", "1"), "no edges"),
        (BITS, "one,other\nnorth,east\n", ("--epsilon", "1"), "'east'"),
        (BITS, "one,other\nnorth,north\n", ("--epsilon", "1"), "to itself"),
        (BITS, "one,other\nnorth\n", ("--epsilon", "1"), "an edge has two"),
        ("profile,p\na,0.5\na,0.6\n", EDGES, ("--epsilon", "1"), "twice"),
        ("profile,p\na,0.5\n", EDGES, ("--epsilon", "1"), "at least 2 profiles"),
        ("profile,p\na,1.5\nb,0\n", "x,y\na,b\n", ("--epsilon", "1"), "between 0 and 1"),
        ("profile,a,b\na,0.5,0.6\nb,0,1\n", "x,y\na,b\n", ("--epsilon", "1"), "sums to 1.1"),
        ("profile,p\na,many\nb,0\n", "x,y\na,b\n", ("--epsilon", "1"), "many"),
        (b"\xff\xfe\x00", EDGES, ("--epsilon", "1"), "UTF-8"),
        (BITS, b"\xff\xfe", ("--epsilon", "1"), "UTF-8"),
        ("", EDGES, ("--epsilon", "1"), "empty"),
        ('profile,p\n"a,0.5\n', EDGES, ("--epsilon", "1"), "not CSV"),
        ("[1, 2]", None, ("--epsilon", "1"), '"profiles"'),
        ("{}", EDGES, ("--epsilon", "1"), "leave out --edges"),
        ("{}", None, ("--epsilon", "1"), '"edges"'),
        ('{"profiles": {"a": 0', None, ("--epsilon", "1"), "not JSON"),
        ('{"profiles": {"a": null, "b": 1}, "edges": [["a", "b"]]}', None, ("--epsilon", "1"), "profile 'a'"),
        ('{"profiles": {"a": 0, "b": 1}, "edges": 5}', None, ("--epsilon", "1"), "pairs"),
        ('{"profiles": {"a": 0, "b": 1}, "edges": [[["a"], "b"]]}', None, ("--epsilon", "1"), "end of an edge"),
        ('{"profiles": 5, "edges": []}', None, ("--epsilon", "1"), "profiles"),
        ('{"profiles": {"a": 0, "b": 1}, "edges": [["a", "b"]], "values": 5}', None, ("--epsilon", "1"), "values"),
        (
            '{"profiles": {"a": 0, "b": 1}, "edges": [["a", "b"]], "values": [[], {}]}',
            None,
            ("--epsilon", "1"),
            "label",
        ),
    ],
)
def test_refusals(run, write, table, edges, more, words):
    given = () if edges is None else ("--edges", write(edges, "edges.csv"))
    assert words in run("design", "profiles", write(table, "profiles"), *given, *more, code=2).err


def test_files_that_are_not_there(run, bits):
    assert "nowhere.csv" in run("design", "profiles", "nowhere.csv", "--epsilon", "1", code=2).err
    assert "nowhere.csv" in run("design", "profiles", bits[0], "--edges", "nowhere.csv", "--epsilon", "1", code=2).err
    assert "standard input" in run("design", "profiles", "-", *bits[1:], stdin=BITS, code=2).err


def test_a_picture(run, bits, tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "noise.png"
    assert run("design", "profiles", *bits, "--plot", picture).out.endswith(f"drawn: {picture}\n")
    assert picture.read_bytes().startswith(b"\x89PNG")
