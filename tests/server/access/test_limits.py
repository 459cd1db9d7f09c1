"""Budgets and admission against their plain definitions, at any times and in any order."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from msgspec.structs import fields, replace

from voiceloop.server.access.limits import Admission, Bucket, Budget, Kind, Refusal, Ticket
from voiceloop.settings.config import ServerConfig

pytestmark = pytest.mark.pure

RATES = {
    Kind.AUDIO: ("audio_ahead_s", None, 1.0),
    Kind.MESSAGES: ("messages_burst", "messages_per_s", 1.0),
    Kind.PREFILL: ("prefill_tokens_per_min", "prefill_tokens_per_min", 60.0),
    Kind.GENERATED: ("generated_tokens_per_min", "generated_tokens_per_min", 60.0),
}
"""What spends at a rate: the limit that may be spent at once, the one that comes back, and when."""
ENDS = {Kind.IDLE: "idle_s", Kind.SESSION: "session_s"}
PLACES = {Kind.SESSIONS: "max_sessions", Kind.SESSIONS_OF_KEY: "max_sessions_per_key"}

rates = st.sampled_from(sorted(RATES))
limits = st.builds(
    ServerConfig,
    audio_ahead_s=st.integers(1, 20).map(float),
    messages_burst=st.integers(1, 20),
    messages_per_s=st.integers(1, 20),
    prefill_tokens_per_min=st.integers(1, 20).map(lambda n: 60 * n),
    generated_tokens_per_min=st.integers(1, 20).map(lambda n: 60 * n),
    idle_s=st.integers(1, 20).map(float),
    session_s=st.integers(1, 60).map(float),
)
steps = st.integers(0, 256).map(lambda n: n / 64)
"""Seconds and amounts that floats hold exactly."""
moments = st.floats(0, 1e7)


def given_by(kind: Kind, limits: ServerConfig) -> tuple[float, float]:
    """How much of `kind` may be spent at once, and how much comes back in a second."""
    most, back, seconds = RATES[kind]
    return getattr(limits, most), getattr(limits, back) / seconds if back else 1.0


# --- what is spent at a rate --------------------------------------------------------------------


@given(rates, limits, moments, st.lists(st.tuples(steps, steps.map(lambda n: 4 * n))))
def test_over_no_stretch_of_time_is_more_spent_than_the_burst_and_the_rate_allow(
    kind: Kind, limits: ServerConfig, start: float, asked: list[tuple[float, float]]
) -> None:
    """The plain definition: a spending is good if it is within the limits of every stretch."""
    now = float(round(start))
    most, rate = given_by(kind, limits)
    budget, spent = Budget(limits, now), list[tuple[float, float]]()
    for pause, amount in asked:
        now += pause
        stretches = [
            sum(other for _, other in spent[first:]) + amount
            <= most + rate * (now - spent[first][0])
            for first in range(len(spent))
        ]
        good = amount <= most and all(stretches)
        refusal = budget.spend(kind, amount, now)
        assert (refusal is None) == good
        if good:
            spent.append((now, amount))


@given(rates, limits, moments, st.integers(0, 64), st.integers(1, 64))
def test_a_refusal_says_exactly_when_to_come_back(
    kind: Kind, limits: ServerConfig, now: float, first: int, beyond: int
) -> None:
    most, rate = given_by(kind, limits)
    amount = most * (64 - first + beyond) / 64

    def spent() -> Budget:
        budget = Budget(limits, now)
        assert budget.spend(kind, most * first / 64, now) is None
        return budget

    refusal = spent().spend(kind, amount, now)
    assert refusal is not None
    assert refusal.reason is kind
    assert (refusal.retry_after_s is None) == (amount > most)
    if refusal.retry_after_s is not None:
        assert spent().spend(kind, amount, now + refusal.retry_after_s) is None
        early = refusal.retry_after_s - 0.01 / rate
        assert spent().spend(kind, amount, now + max(0.0, early)) is not None


@given(rates, limits, st.lists(steps, min_size=1))
def test_a_refusal_takes_nothing(kind: Kind, limits: ServerConfig, asked: list[float]) -> None:
    most, _ = given_by(kind, limits)
    budget, left = Budget(limits, 0), most
    for amount in asked:
        if budget.spend(kind, amount, 0) is None:
            left -= amount
        assert left >= 0
    assert budget.spend(kind, left, 0) is None


@given(rates, limits, moments, steps, steps)
def test_what_is_owed_is_paid_first(
    kind: Kind, limits: ServerConfig, start: float, owed: float, early: float
) -> None:
    most, rate = given_by(kind, limits)
    start = float(round(start))
    budget = Budget(limits, start)
    refusal = budget.charge(kind, most + owed, start)
    assert (refusal is None) == (owed == 0)
    if refusal is None:
        return
    assert refusal.retry_after_s == pytest.approx(owed / rate)
    paid = start + owed / rate
    assert (budget.spend(kind, 0, start + early) is None) == (start + early >= paid - 1e-3 / rate)
    assert budget.spend(kind, 0, max(start + early, paid)) is None


@given(limits, st.lists(st.floats(0, 100), min_size=1))
def test_a_clock_that_goes_back_gives_nothing_away(
    limits: ServerConfig, times: list[float]
) -> None:
    bucket = Bucket(1e6, 1.0, times[0])
    bucket.take(1e6, times[0])
    level = 0.0
    for now in times:
        assert level <= bucket.level(now) <= max(times) - times[0] + 1e-6
        level = bucket.level(now)
    assert bucket.level(max(times)) == pytest.approx(max(times) - times[0], abs=1e-6)


@pytest.mark.parametrize("chunk_s", [0.01, 0.02, 0.1, 15.0])
def test_audio_in_real_time_is_never_refused_and_a_dropout_can_be_made_good(chunk_s: float) -> None:
    limits = ServerConfig()
    budget = Budget(limits, 0)
    for n in range(int(300 / chunk_s)):
        assert budget.spend(Kind.MESSAGES, 1, n * chunk_s) is None
        assert budget.spend(Kind.AUDIO, chunk_s, n * chunk_s) is None
    # The network stood still for half a minute; then everything comes at once, in pieces that are
    # held back while there are too many.
    now = 330.0
    for _ in range(int(30 / chunk_s)):
        while refusal := budget.spend(Kind.MESSAGES, 1, now):
            assert refusal.retry_after_s is not None
            now += refusal.retry_after_s
        assert budget.spend(Kind.AUDIO, chunk_s, now) is None
    assert now < 345


# --- the end of a session -----------------------------------------------------------------------


@given(limits, moments, st.lists(st.tuples(st.sampled_from(sorted(RATES)), steps)), steps)
def test_a_session_ends_when_its_time_is_over_or_nothing_comes(
    limits: ServerConfig, start: float, spent: list[tuple[Kind, float]], pause: float
) -> None:
    start = float(round(start))
    budget, now, active = Budget(limits, start), start, start
    for kind, elapsed in spent:
        now += elapsed
        budget.spend(kind, 1, now)
        active = now if kind is Kind.MESSAGES else active
        assert budget.ends_at() == min(start + limits.session_s, active + limits.idle_s)
    now += 4 * pause
    over = budget.over(now)
    if now >= start + limits.session_s:
        assert over is not None
        assert over.reason is Kind.SESSION
    elif now >= active + limits.idle_s:
        assert over is not None
        assert over.reason is Kind.IDLE
    else:
        assert over is None
    assert (over is not None) == (now >= budget.ends_at())
    assert over is None or over.retry_after_s is None


def test_a_message_that_is_refused_is_a_sign_of_life_all_the_same() -> None:
    budget = Budget(ServerConfig(messages_burst=1, idle_s=10), 0)
    assert budget.spend(Kind.MESSAGES, 2, 9) is not None
    assert budget.over(18) is None
    assert budget.over(19) is not None


# --- mistakes of the caller ---------------------------------------------------------------------


@pytest.mark.parametrize("amount", [-1, -1e-9, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", RATES)
def test_what_is_no_amount_cannot_be_spent(kind: Kind, amount: float) -> None:
    budget = Budget(ServerConfig(), 0)
    with pytest.raises(ValueError, match="cannot be spent"):
        budget.spend(kind, amount, 0)
    with pytest.raises(ValueError, match="cannot be spent"):
        budget.charge(kind, amount, 0)


@pytest.mark.parametrize("kind", [*ENDS, *PLACES])
def test_time_and_places_are_not_spent(kind: Kind) -> None:
    with pytest.raises(KeyError):
        Budget(ServerConfig(), 0).spend(kind, 1, 0)


# --- words --------------------------------------------------------------------------------------


SAID_OF = {
    **ENDS,
    **PLACES,
    **{kind: two or one for kind, (one, two, _) in RATES.items()},
}


@pytest.mark.parametrize(("kind", "limit"), SAID_OF.items())
def test_a_refusal_names_its_limit(kind: Kind, limit: str) -> None:
    roomy = ServerConfig(max_sessions=999, max_sessions_per_key=999, idle_s=999, session_s=9999)
    limits = replace(roomy, **{limit: 107})
    if kind in PLACES:
        admission = Admission(limits)
        admitted = [admission.admit("a") for _ in range(108)]
        refusal = next(one for one in admitted if isinstance(one, Refusal))
    else:
        budget = Budget(limits, 0)
        refusal = budget.over(107) if kind in ENDS else budget.spend(kind, 1e9, 0)
    assert refusal is not None
    assert refusal.reason is kind
    assert "107" in refusal.text
    assert "\n" not in refusal.text


def test_every_limit_is_used() -> None:
    named = {name for group in (ENDS, PLACES) for name in group.values()}
    named |= {name for most, rate, _ in RATES.values() for name in (most, rate) if name}
    elsewhere = {
        "audio_backlog_s",
        "conversation_bytes",
        "drain_s",
        "max_parked_per_key",
        "ping_s",
        "resume_s",
        "store",
    }
    assert named | elsewhere == {field.name for field in fields(ServerConfig)}


# --- admission ----------------------------------------------------------------------------------


class Crowd(RuleBasedStateMachine):
    """Clients that come and go, against plain counting."""

    tickets = Bundle("tickets")

    def __init__(self) -> None:
        super().__init__()
        self.limits = ServerConfig(max_sessions=5, max_sessions_per_key=3)
        self.admission = Admission(self.limits)
        self.there: Counter[str | None] = Counter()

    @rule(target=tickets, key=st.sampled_from([None, "a", "b"]))
    def come(self, key: str | None) -> object:
        admitted = self.admission.admit(key)
        if self.there.total() == 5:
            expected = Kind.SESSIONS
        elif self.there[key] == 3:
            expected = Kind.SESSIONS_OF_KEY
        else:
            assert isinstance(admitted, Ticket)
            assert admitted.key == key
            self.there[key] += 1
            return admitted
        assert isinstance(admitted, Refusal)
        assert (admitted.reason, admitted.retry_after_s) == (expected, None)
        return None

    @rule(ticket=consumes(tickets))
    def go(self, ticket: Ticket | None) -> None:
        if ticket is None:
            return
        self.admission.release(ticket)
        self.there[ticket.key] -= 1
        with pytest.raises(KeyError):
            self.admission.release(ticket)

    @invariant()
    def counted(self) -> None:
        assert len(self.admission) == self.there.total()


TestCrowd = Crowd.TestCase


def test_a_ticket_of_somebody_else_gives_nothing_back() -> None:
    admission = Admission(ServerConfig())
    admission.admit("a")
    with pytest.raises(KeyError):
        admission.release(Ticket("a"))
    assert len(admission) == 1
