"""What makes a candidate the best, by name."""

from __future__ import annotations

import math
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from voiceloop_parallel import candidates
from voiceloop_parallel.candidates import LONG_WORDS, Candidate, best, concise, likelihood, scorer
from voiceloop_parallel.lines import CLAUSE_MOST_WORDS, ends_clause

from voiceloop.errors import ConfigError

pytestmark = pytest.mark.pure


def said(text: str, *logprobs: float) -> Candidate:
    return Candidate(text, tuple(range(len(logprobs))), logprobs, complete=True)


def test_the_likeliest_is_that_whose_tokens_are_on_the_average() -> None:
    sure, long = said("Yes.", -0.5, -0.5), said("Yes, it is.", -0.4, -0.4, -0.4, -0.4)
    assert likelihood(sure) == -0.5
    assert best([sure, long], likelihood) == 1
    assert best([sure, sure, long, long], likelihood) == 2  # the first of equal ones


def test_concise_dislikes_repetition_length_and_silence() -> None:
    plain, twice = said("The sea is wide and blue."), said("The sea is wide. The sea is wide.")
    short, long = said("Yes."), said(" ".join(str(n) for n in range(LONG_WORDS + 20)))
    assert concise(plain) == concise(short) == 0
    assert concise(twice) == pytest.approx(-2 / 6)
    assert concise(long) == pytest.approx(-20 / LONG_WORDS)
    assert concise(said("  ")) == -math.inf
    assert best([twice, said(""), plain, long], concise) == 2


def longest(candidate: Candidate) -> float:
    return len(candidate.text)


def test_a_function_that_somebody_registered_is_found_by_its_name(monkeypatch: Any) -> None:
    entry = EntryPoint("longest", f"{__name__}:longest", candidates.GROUP)
    monkeypatch.setattr(
        candidates, "entry_points", lambda group: [entry] * (group == candidates.GROUP)
    )
    assert scorer("longest")(said("four")) == 4
    assert scorer("likelihood") is likelihood
    with pytest.raises(ConfigError, match="there is no scorer called 'longst'") as caught:
        scorer("longst")
    assert caught.value.hint == "did you mean 'longest'?"


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("", False),
        ("Well,", False),
        ("Yes, of", False),
        ("Yes, of course,", True),
        ('He said "yes."', True),
        ("It is nine", False),
        ("one two three four five six seven eight", False),
        ("one two three four five six seven eight n", True),
    ],
)
def test_a_first_clause_ends_at_a_mark_or_after_some_words(text: str, ends: bool) -> None:
    assert CLAUSE_MOST_WORDS == 8
    assert ends_clause(text) == ends
