"""Comparing records: regressions are found, noise is not, and what is no record is refused."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.compare import Comparison, compare, text
from tests.bench.made import clip_record, take_record
from voiceloop.errors import VoiceloopError

pytestmark = pytest.mark.pure

CLIPS = 24


def record(
    times: Sequence[float | None], *, slow: float = 2.0, names: str = "starter", **others: Any
) -> dict[str, Any]:
    """Of clips that the speculative mode answered after `times`, the sequential one `slow` times
    later; `others` change the speculative takes."""
    clips = [
        clip_record(
            f"{names}-{index:03}",
            speculative=take_record(time, **others),
            sequential=take_record(None if time is None else slow * time),
        )
        for index, time in enumerate(times)
    ]
    settings = {"suite": "starter", "seed": 0}
    return {"bench": "latency", "settings": settings, "machine": {"load": 0.1}, "clips": clips}


def times(seed: int, count: int = CLIPS, middle: float = 400.0) -> list[float]:
    """What clips take: they differ much from each other."""
    return np.random.default_rng(seed).normal(middle, 60, count).tolist()


def jittered(values: Sequence[float], seed: int, factor: float = 1.0) -> list[float]:
    """The same clips once more: they differ little from what they were."""
    noise = np.random.default_rng(seed).normal(0, 8, len(values))
    return [float(factor * value + step) for value, step in zip(values, noise, strict=True)]


def verdicts(comparison: Comparison) -> dict[str, str]:
    return {change.figure.name: change.verdict for change in comparison.changes}


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_noise_is_no_regression(seed: int) -> None:
    before = times(seed)
    found = compare(record(before), record(jittered(before, seed + 1)))
    assert not found.regressed


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_a_tenth_slower_is_one_and_the_other_way_round_it_is_better(seed: int) -> None:
    before = times(seed)
    after = jittered(before, seed + 1, factor=1.1)
    found = compare(record(before), record(after))
    assert found.regressed
    assert verdicts(found)["voice to voice"] == "worse"
    assert verdicts(compare(record(after), record(before)))["voice to voice"] == "better"


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("clips cut off", {"cut_offs": 1}),
        ("missed endpoints", {"endpoint_delay_ms": None}),
        ("word errors in a clip", {"word_errors": 2}),
        ("not answered", {"voice_to_voice_ms": None}),
    ],
)
def test_one_clip_that_fails_is_noise_and_many_are_not(name: str, bad: dict[str, Any]) -> None:
    own = record(times(4))
    for count, verdict in ((1, "same"), (CLIPS // 2, "worse")):
        other = copy.deepcopy(own)
        for clip in other["clips"][:count]:
            clip["takes"]["speculative"] |= bad
        found = compare(own, other)
        assert verdicts(found)[name] == verdict
        assert found.regressed == (verdict == "worse")
        assert verdicts(found)["voice to voice"] == "same"


def test_what_else_differs_is_told() -> None:
    other = record(times(8))
    other["machine"]["load"] = 7.5
    other["settings"]["draft"] = "none"
    told = text(compare(record(times(8)), other))
    assert "machine, load: 0.1 → 7.5" in told
    assert "settings, draft: None → none" in told


def test_the_text_tells_each_change_with_its_bounds() -> None:
    before = times(9)
    told = text(compare(record(before), record([value + 100 for value in before])))
    line = next(line for line in told.splitlines() if line.startswith("| voice to voice"))
    assert "+100 (+100 to +100) | worse, 24 clips |" in line
    assert "Worse beyond noise." in told


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (None, "the second file is no record"),
        ([], "the second file is no record"),
        ({"bench": "latency"}, "the second file is no record"),
        ({"bench": "llm", "modes": {}}, "one of `bench llm`"),
        ({**record(times(1)), "clips": [{"name": "a"}]}, "no record"),
        ({**record(times(1)), "clips": [clip_record("a", speculative={})]}, "no record"),
        ({**record(times(1)), "settings": {"suite": "noise"}}, "starter and noise"),
        (record(times(1, 3)), "too few"),
        (record([]), "too few"),
    ],
)
def test_what_cannot_be_compared_is_refused(other: object, message: str) -> None:
    with pytest.raises(VoiceloopError) as refused:
        compare(record(times(1)), other)
    assert message in refused.value.message
    assert refused.value.hint
