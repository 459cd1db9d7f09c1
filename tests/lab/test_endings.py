"""What the silences in takes say of endpointing: read from traces as they are, and added up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from lab.conversations.endings import (
    Silence,
    areas,
    curve,
    cut_off_shares,
    cut_offs,
    silences,
    wait_ms,
)
from lab.conversations.sentences import Standing
from tests.bench.made import answered, take
from tests.lab.made import clip, judge
from voiceloop.settings.config import TurnConfig
from voiceloop.types import Calibration

pytestmark = pytest.mark.pure

CONFIG = TurnConfig()
CALIBRATION = Calibration(complete_above=0.1, incomplete_below=0.02, complete_ms=88)
PAUSES: list[tuple[Standing, float, float]] = [("incomplete", 0.8, 1.1), ("whole", 1.4, 1.6)]


def test_a_judgement_belongs_to_the_silence_in_which_it_was_begun() -> None:
    turn = answered()
    judge(turn, 0.62, 0.64, "wha", 0.9)  # within a word
    judge(turn, 0.9, 0.95, "what is", 0.001)
    judge(turn, 2.1, 2.14, "what is the time", 0.8)
    first, second, end = silences(clip(pauses=PAUSES), take(turn.trace("done")))
    assert (first.standing, first.length_ms, first.text) == ("incomplete", 300.0, "what is")
    assert first.probability == 0.001
    assert first.judged_ms == pytest.approx(150, abs=0.1)
    assert (second.standing, second.probability, second.judged_ms) == ("whole", None, None)
    assert second.text == "what is"  # what was said, since nobody judged what was understood
    assert (end.standing, end.length_ms, end.text) == ("end", None, "what is the time")
    assert end.judged_ms == pytest.approx(140, abs=0.1)


def test_the_last_judgement_of_a_silence_counts_and_none_that_is_late() -> None:
    turn = answered()
    judge(turn, 0.9, 0.92, "what", 0.5)
    judge(turn, 1.0, 1.02, "what is", 0.1)
    judge(turn, 1.2, 1.22, "what is the", 0.7)  # the user had gone on
    first = silences(clip(pauses=PAUSES), take(turn.trace("done")))[0]
    assert (first.text, first.probability) == ("what is", 0.1)


def test_a_pause_is_cut_off_where_a_turn_ended_in_it() -> None:
    said = clip(pauses=PAUSES)
    assert cut_offs(said, take(ends=[2.2])) == [("incomplete", False), ("whole", False)]
    assert cut_offs(said, take(ends=[1.0, 2.2])) == [("incomplete", True), ("whole", False)]
    # The voice detector is late.
    assert cut_offs(said, take(ends=[1.62, 2.2])) == [("incomplete", False), ("whole", True)]
    shares = cut_off_shares([("incomplete", True), ("incomplete", False), ("whole", False)])
    assert shares == {
        "incomplete": {"pauses": 2, "ended": 1, "cut_off": 0.5},
        "open": {"pauses": 0, "ended": 0, "cut_off": None},
        "whole": {"pauses": 1, "ended": 0, "cut_off": 0.0},
    }


def test_areas_compare_both_scores_over_the_silences_that_were_judged() -> None:
    found = [
        Silence("a", "end", None, "what is the time", 0.9, 100),
        Silence("b", "end", None, "tell me which country it is in", 0.3, 100),
        Silence("a", "incomplete", 400, "what is the", 0.01, 100),
        Silence("b", "incomplete", 400, "give me a", 0.4, 100),
        Silence("c", "incomplete", 400, "tell", None),
        Silence("c", "open", 400, "tell me a story", 0.99, 100),
    ]
    auc = areas(found)
    assert (auc["ends"], auc["incomplete"]) == (2, 2)
    assert auc["p_eot"] == 0.75
    # "in", "the" and "a" ask for more, "time" does not.
    assert auc["trailing_words"] == 0.75
    assert areas(found[:2])["p_eot"] is None
    assert auc["sound"] is auc["both"] is None


def test_a_policy_waits_for_its_judgement_and_as_configured_after_it() -> None:
    sure = Silence("a", "end", None, "what is the time", 0.9, 80.0)
    config = structs.replace(CONFIG, endpoint="p-eot")
    assert wait_ms(sure, config, CALIBRATION) == CONFIG.complete_ms
    assert wait_ms(replace(sure, judged_ms=210.0), config, CALIBRATION) == 210.0
    assert wait_ms(replace(sure, probability=0.05), config, CALIBRATION) == CONFIG.hangover_ms
    assert wait_ms(replace(sure, probability=0.001), config, CALIBRATION) == CONFIG.incomplete_ms
    assert (
        wait_ms(replace(sure, probability=None, judged_ms=None), config, CALIBRATION)
        == CONFIG.hangover_ms
    )


def test_a_curve_is_what_the_silences_say() -> None:
    found = [
        Silence("a", "end", None, "what is the time", 0.9, 100.0),
        Silence("a", "incomplete", 400.0, "what is the", 0.001, 100.0),
        Silence("b", "whole", 300.0, "what time is it", 0.8, 100.0),
    ]
    fixed = {one["ms"]: one for one in curve(found, "fixed", CONFIG, CALIBRATION)}
    assert fixed[300] == {
        "ms": 300,
        "delay_ms": 300.0,
        "cut_offs_incomplete": 1.0,
        "cut_offs": 1.0,
    }
    assert fixed[400]["cut_offs"] == 0.5
    assert fixed[420]["cut_offs"] == 0.0
    asked = {one["ms"]: one for one in curve(found, "p-eot", CONFIG, CALIBRATION)}
    assert asked[160]["delay_ms"] == 160.0
    assert asked[160]["cut_offs_incomplete"] == 0.0
    assert asked[160]["cut_offs"] == 0.5
