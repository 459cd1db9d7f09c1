"""Metrics: what each event adds, read back with Prometheus' own parser."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from voiceloop.errors import Code
from voiceloop.server.access import auth, limits
from voiceloop.server.ops.metrics import ANSWER_S, MODELS, WAIT_S, Metrics
from voiceloop.server.resume import sessions
from voiceloop.trace.record import Mark
from voiceloop.types import Outcome, TurnTrace

pytestmark = pytest.mark.pure

CODES: tuple[Code, ...] = get_args(Code)
REASONS = [*auth.RefusalReason, *limits.Kind, *sessions.ResumeFailure]
Sample = tuple[str, tuple[tuple[str, str], ...]]


def read(metrics: Metrics) -> dict[Sample, float]:
    """Every sample but the moments at which series were made."""
    text, kind = metrics.render()
    assert kind.startswith("text/plain; version=")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


def changed(metrics: Metrics, before: dict[Sample, float]) -> dict[str, float]:
    """What differs by now, as `name{label}`."""
    return {
        f"{name}{{{','.join(value for _, value in labels)}}}": value - before[name, labels]
        for (name, labels), value in read(metrics).items()
        if value != before[name, labels]
    }


def observed(name: str, buckets: tuple[float, ...], value: float, *labels: str) -> dict[str, Any]:
    """What one observation adds to a histogram."""
    reached = [*(f"{bound}" for bound in buckets if value <= bound), "+Inf"]
    shown = ",".join(labels)
    return {
        f"{name}_count{{{shown}}}": 1,
        f"{name}_sum{{{shown}}}": pytest.approx(value),
        **{f"{name}_bucket{{{','.join([bound, *labels])}}}": 1 for bound in reached},
    }


def test_every_series_is_there_from_the_start_and_is_zero() -> None:
    samples = read(Metrics())
    assert set(samples.values()) == {0.0}
    labelled = {labels for _, labels in samples}
    expected = [("reason", reason) for reason in REASONS]
    expected += [("outcome", outcome) for outcome in get_args(Outcome)]
    expected += [("code", code) for code in CODES]
    expected += [("state", "connected"), ("state", "parked")]
    expected += [("direction", "in"), ("direction", "out")]
    expected += [("kind", kind) for kind in ("drafted", "accepted", "wasted")]
    assert {(pair,) for pair in expected} <= labelled
    assert all(name.startswith("voiceloop_") for name, _ in samples)


@given(st.sampled_from(MODELS), st.floats(0, 10))
def test_waits_are_counted_by_model(model: str, seconds: float) -> None:
    metrics = Metrics()
    before = read(metrics)
    metrics.waited(model, seconds)
    expected = observed("voiceloop_queue_wait_seconds", WAIT_S, seconds, model)
    assert changed(metrics, before) == {
        name: value for name, value in expected.items() if seconds or "_sum" not in name
    }


@given(
    st.sampled_from(get_args(Outcome)),
    st.integers(1, 3000),
    st.integers(1, 3000),
    st.integers(1, 99),
    st.integers(1, 99),
)
def test_a_turn_adds_what_its_trace_says(
    outcome: Outcome, endpoint_ms: int, sound_ms: int, drafted: int, wasted: int
) -> None:
    marks = {
        str(Mark.SPEECH_END): 100.0,
        str(Mark.ENDPOINT): 100.0 + endpoint_ms / 1000,
        str(Mark.FIRST_SOUND): 100.0 + (endpoint_ms + sound_ms) / 1000,
    }
    counters = {"drafted": drafted, "accepted": 1, "wasted_tokens": wasted, "underruns": 2, "x": 9}
    metrics = Metrics()
    before = read(metrics)
    metrics.observe(TurnTrace(1, marks, counters, "it was said", outcome))
    assert changed(metrics, before) == {
        f"voiceloop_turns_total{{{outcome}}}": 1,
        "voiceloop_tokens_total{drafted}": drafted,
        "voiceloop_tokens_total{accepted}": 1,
        "voiceloop_tokens_total{wasted}": wasted,
        "voiceloop_underruns_total{}": 2,
        **observed("voiceloop_voice_to_voice_seconds", ANSWER_S, (endpoint_ms + sound_ms) / 1000),
        **observed("voiceloop_endpoint_to_sound_seconds", ANSWER_S, sound_ms / 1000),
    }
