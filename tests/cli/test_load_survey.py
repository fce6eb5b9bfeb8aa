"""Which published survey is meant."""

from __future__ import annotations

import pytest

from deniable.cli.load_survey import choose
from deniable.errors import LabelError, SpecError

HABITS, OLDER, MOODS = "ab12cd" + "0" * 58, "ab12cd" + "1" * 58, "ffffff" + "0" * 58
PUBLISHED = {HABITS: "habits", OLDER: "habits", MOODS: "moods"}


@pytest.mark.parametrize("given", ["moods", "ffffff", "FFFFFF0", MOODS])
def test_a_name_or_a_beginning(given):
    assert choose(given, PUBLISHED, "choose") == MOODS


def test_the_only_one_need_not_be_named():
    assert choose(None, {MOODS: "moods"}, "choose") == MOODS


@pytest.mark.parametrize(
    ("given", "listed"),
    [("fffff", "moods"), ("mood", "moods"), ("", "moods"), (None, "moods")],
)
def test_what_is_not_clear_is_listed(given, listed):
    """A beginning that is too short, and half a name."""
    with pytest.raises(LabelError, match=f"choose .*{listed}"):
        choose(given, PUBLISHED, "choose")


def test_of_several_the_fingerprint_tells_which():
    with pytest.raises(LabelError) as refused:
        choose("habits", PUBLISHED, "there is no such file either; give a file or one of")
    assert str(refused.value) == (
        "'habits' stands for several surveys: give (more of) the fingerprint of the one that is meant: "
        "habits (ab12cd000000), habits (ab12cd111111)"
    )


def test_nothing_is_published():
    with pytest.raises(SpecError, match="no survey is published"):
        choose("moods", {}, "choose")
