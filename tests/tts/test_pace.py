"""How synthesis keeps ahead of the ear."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tts.test_clauses import cut
from voiceloop.tts.pace import COMFORTABLE, REPLY_S, WRITTEN, Pace, Tempo, joined
from voiceloop.types import Clause

pytestmark = pytest.mark.pure

times = st.floats(0.1, 20)


def test_nobody_waits_for_an_engine_that_is_not_known_or_quick() -> None:
    pace = Pace()
    assert pace.factor == pace.lead_s == 0
    pace.observe(2.0, 2.0 * COMFORTABLE)
    assert pace.lead_s == 0


@given(st.floats(1.0, 10.0), st.floats(0.5, 3.0))
def test_with_the_lead_a_slow_engine_never_lets_the_queue_run_dry(
    factor: float, piece_s: float
) -> None:
    pace = Pace()
    pace.observe(1.0, factor)
    # Audio comes at 1 / factor of the pace at which it is played.
    begins = pace.lead_s * factor
    played = 0.0
    while played < REPLY_S:
        made = min(REPLY_S, (begins + played) / factor)
        assert made >= played - 1e-6
        played += piece_s


@given(st.lists(st.tuples(times, times), min_size=1, max_size=30))
def test_the_factor_is_that_of_the_recent_past(observed: list[tuple[float, float]]) -> None:
    pace = Pace()
    for audio_s, took_s in observed:
        pace.observe(audio_s, took_s)
    recent = observed[-8:]
    expected = sum(took for _, took in recent) / sum(audio for audio, _ in recent)
    assert pace.factor == pytest.approx(expected)


def test_the_tempo_is_that_of_what_was_written_and_spoken_lately() -> None:
    pace = Pace()
    assert pace.tempo == Tempo()
    pace.wrote(0, 3.0)  # a server that tells no tokens
    assert pace.tempo == Tempo()
    for _ in range(WRITTEN):
        pace.wrote(2, 0.1)
    pace.spoke(30, 2.0, 0.1)
    pace.spoke(10, 1.0, 0.3)
    tempo = pace.tempo
    assert tempo.token_s == pytest.approx(0.05)
    assert (tempo.char_s, tempo.start_s) == (pytest.approx(3 / 40), pytest.approx(0.2))


@given(
    st.lists(st.sampled_from(["Yes. ", "It is four, I think. ", "“No”? ", "3.5 km. "]), min_size=2)
)
def test_clauses_joined_in_any_way_say_the_same(sentences: list[str]) -> None:
    clauses = cut(sentences)
    whole = clauses[0]
    for clause in clauses[1:]:
        whole = joined(whole, clause)
    assert whole.text == "".join(clause.text for clause in clauses)
    assert whole.last and whole.index == 0
    assert _said(whole) == [word for clause in clauses for word in _said(clause)]


def _said(clause: Clause) -> list[tuple[str, int]]:
    return [(clause.spoken[span.start : span.end], span.tokens) for span in clause.spans]
