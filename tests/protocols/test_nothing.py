"""Before the first report every result is there: no value, the whole range as interval, and a note."""

import json
import math

import numpy as np
import pytest

from deniable.domains import Strings
from deniable.errors import LabelError, NumberError
from deniable.protocols import CMS, GRR, OLH, RAPPOR
from deniable.protocols.protocol import registered
from deniable.results import combine, no_reports
from deniable.results.render.text import as_html
from tests.documents import rows_of

WAYS = [(name, i) for name in sorted(registered()) for i, _ in enumerate(registered()[name].examples())]


def before(name, i):
    protocol = list(registered()[name].examples())[i]
    return protocol.estimate(protocol.empty())


@pytest.mark.parametrize(("name", "i"), WAYS, ids=[f"{name}-{i}" for name, i in WAYS])
def test_every_form_of_every_kind(name, i):
    found = before(name, i)
    assert found.n == 0
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["n"] == 0
    assert content["notes"] == [no_reports()]
    assert all(row["value"] is row["stderr"] is None for row in rows_of(content))
    assert rows_of(content) or found.kind == "found"  # nothing is found before the first report
    assert all(row["low"] < row["high"] for row in rows_of(content))
    for shown in (str(found), as_html(found.document())):
        assert "nan" not in shown.lower()
        assert no_reports() in shown
    head, *lines = found.to_csv().splitlines()
    assert "label,value,stderr,low,high,unit" in head
    assert len(lines) == sum(len(one["rows"]) for one in content["sections"])
    assert not any("nan" in line.lower() for line in lines)
    assert set(found.to_arrow().column("value").to_pylist()) <= {None, 1.0}  # a curve ends at one, whatever is known
    assert [repr(found.table(0.9, True, whom)) for whom in (True, False)]
    again = found.repeated(2.0, 3.0)
    assert rows_of(again.to_dict()) == rows_of(found.to_dict())
    difference = found - found
    assert difference.p_value == 1
    assert np.isfinite(difference.interval()).all()
    assert "nan" not in str(difference)
    found.plot()
    import matplotlib.pyplot as plt

    plt.close("all")


def test_shares_that_are_made_consistent_combined_and_compared():
    protocol = GRR(["a", "b", "c"], 1)
    nothing = protocol.estimate(protocol.empty())
    known = protocol.estimate(protocol.tally(protocol.privatize(["a"] * 90 + ["b"] * 10)))
    assert rows_of(nothing.consistent("norm-sub").to_dict()) == rows_of(nothing.to_dict())
    with pytest.raises(LabelError, match="no method"):
        nothing.consistent("magic")
    np.testing.assert_allclose(combine(nothing, known).frequencies, known.frequencies)
    assert combine(nothing, nothing).n == 0
    with pytest.raises(NumberError, match="no reports"):
        nothing.winner()
    assert (known - nothing).p_value == 1
    np.testing.assert_allclose(
        (known - nothing).interval(), np.stack([known.interval()[:, 0] - 1, known.interval()[:, 1]], axis=1)
    )


@pytest.mark.parametrize("kind", [CMS, RAPPOR])
def test_open_text(kind):
    protocol = kind(Strings(32), 2)
    found = protocol.estimate(protocol.empty(), candidates=["rye", "oats"])
    assert found.labels == ("rye", "oats")
    assert [row["value"] for row in rows_of(found.to_dict())] == [None, None]
    assert math.isnan(found.unlisted)
    assert math.isnan(found.unlisted_stderr)
    assert not found.enough.any()
    assert found.verdict == no_reports()
    assert found.consistent("norm-sub").n == 0
    assert str(found).count(no_reports()) == 1


@pytest.mark.parametrize("protocol", [GRR(5, 1), OLH(5, 1)], ids=["GRR", "OLH"])
def test_maximum_likelihood(protocol):
    found = protocol.mle(protocol.privatize([]))
    assert (found.n, found.method, found.notes) == (0, "mle", [no_reports()])
    assert found.interval().tolist() == [[0.0, 1.0]] * 5
