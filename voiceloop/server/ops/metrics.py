"""The server's metrics, in the format that Prometheus reads.

Each server has a registry of its own, so two servers in one process do not mix. All labels come
from lists that are known at the start: a client can add to a series but never create one. This
module knows neither sessions nor sockets.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from voiceloop.errors import Code
from voiceloop.server.access import auth, limits
from voiceloop.server.resume import sessions
from voiceloop.trace.record import endpoint_to_sound_ms, voice_to_voice_ms
from voiceloop.types import Outcome, TurnTrace

MODELS = ("asr", "turn", "llm", "tts")
"""Names of the models that run on threads of their own. The metrics show how long steps waited for
each."""
ANSWER_S = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.65, 0.8, 1.0, 1.25, 1.5, 2.0)
"""Histogram buckets for the time to an answer, in seconds."""
WAIT_S = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Histogram buckets for the time that a step waited for its model, in seconds."""

_TOKENS = {
    "drafted": "drafted",
    "accepted": "accepted",
    "wasted_tokens": "wasted",
    "tokens_read": "read",
}
"""Label of each kind of tokens in the metrics, by the name of its counter in a trace."""


class Metrics:
    """The metrics of one server. It has many attributes: one for each metric."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()

        def counter(name: str, about: str, label: str, values: Iterable[str]) -> Counter:
            made = Counter(f"voiceloop_{name}", about, [label], registry=registry)
            for value in values:
                made.labels(value)  # makes the series exist, at 0
            return made

        def histogram(name: str, about: str, buckets: tuple[float, ...]) -> Histogram:
            return Histogram(f"voiceloop_{name}", about, buckets=buckets, registry=registry)

        self._store_failures = Counter(
            "voiceloop_store_failures", "Failures of the store of sessions.", registry=registry
        )
        self._sessions = Gauge(
            "voiceloop_sessions", "Sessions there are.", ["state"], registry=registry
        )
        self.sessions(connected=0, parked=0)
        self._refused = counter(
            "refused",
            "Connections and requests refused.",
            "reason",
            (*auth.RefusalReason, *limits.Kind, *sessions.ResumeFailure),
        )
        self._errors = counter(
            "refused_messages", "Messages of clients refused.", "code", get_args(Code)
        )
        self._turns = counter("turns", "Turns that are over.", "outcome", get_args(Outcome))
        self._tokens = counter(
            "tokens",
            "Tokens drafted, accepted, wasted on replies dropped, and read of what was said.",
            "kind",
            _TOKENS.values(),
        )
        self._audio = counter(
            "audio_seconds", "Audio from clients and to them.", "direction", ("in", "out")
        )
        self._underruns = Counter(
            "voiceloop_underruns", "Gaps in replies that sounded.", registry=registry
        )
        self._voice_to_voice = histogram(
            "voice_to_voice_seconds", "From the user's last sample to the first sound.", ANSWER_S
        )
        self._endpoint_to_sound = histogram(
            "endpoint_to_sound_seconds", "From the endpoint decision to the first sound.", ANSWER_S
        )
        self._waits = Histogram(
            "voiceloop_queue_wait_seconds",
            "How long a step waited for its model.",
            ["model"],
            buckets=WAIT_S,
            registry=registry,
        )
        for model in MODELS:
            self._waits.labels(model)

    def store_failed(self) -> None:
        """Count a failure of the store of sessions."""
        self._store_failures.inc()

    def sessions(self, *, connected: int, parked: int) -> None:
        """Set the current numbers of sessions."""
        self._sessions.labels("connected").set(connected)
        self._sessions.labels("parked").set(parked)

    def refused(self, reason: auth.RefusalReason | limits.Kind | sessions.ResumeFailure) -> None:
        """Count a refused connection, a refused resumption or a limit that was reached."""
        self._refused.labels(reason.value).inc()

    def refused_message(self, code: Code) -> None:
        """Count a message that was answered by the error `code`."""
        self._errors.labels(code).inc()

    def heard(self, seconds: float) -> None:
        """Count audio from a client, in seconds."""
        self._audio.labels("in").inc(seconds)

    def sent(self, seconds: float) -> None:
        """Count audio to a client, in seconds."""
        self._audio.labels("out").inc(seconds)

    def waited(self, model: str, seconds: float) -> None:
        """Record how long a step waited for `model`. Raises KeyError if it is not in `MODELS`."""
        if model not in MODELS:
            raise KeyError(model)
        self._waits.labels(model).observe(seconds)

    def observe(self, trace: TurnTrace) -> None:
        """Count a turn that has ended, with the times and counters of its trace."""
        self._turns.labels(trace.outcome).inc()
        for histogram, ms in (
            (self._voice_to_voice, voice_to_voice_ms(trace)),
            (self._endpoint_to_sound, endpoint_to_sound_ms(trace)),
        ):
            if ms is not None:
                histogram.observe(ms / 1000)
        for counted, label in _TOKENS.items():
            self._tokens.labels(label).inc(trace.counters.get(counted, 0))
        self._underruns.inc(trace.counters.get("underruns", 0))

    def audio_s(self, direction: Literal["in", "out"]) -> float:
        """Return the seconds of audio so far from clients (`in`) or to them (`out`)."""
        name, labels = "voiceloop_audio_seconds_total", {"direction": direction}
        return self._registry.get_sample_value(name, labels) or 0.0

    def render(self) -> tuple[bytes, str]:
        """Return all metrics in Prometheus' text format, and its content type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST
