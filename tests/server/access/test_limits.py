"""Limits and admission against their plain definitions, at any times and in any order."""

from __future__ import annotations

import math
from collections import Counter

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from msgspec.structs import fields, replace

from voiceloop.errors import ProtocolError
from voiceloop.server.access.limits import (
    PATIENCE_S,
    Admission,
    Bucket,
    Kind,
    RateLimiter,
    Refusal,
    Ticket,
)
from voiceloop.server.ops.metrics import Metrics
from voiceloop.settings.config import ServerConfig

pytestmark = pytest.mark.virtual

RATES = {
    Kind.AUDIO: "audio_ahead_s",
    Kind.MESSAGES: "messages_per_s",
    Kind.PREFILL: "prefill_tokens_per_min",
    Kind.GENERATED: "generated_tokens_per_min",
}
"""What spends at a rate, with the limit that its refusal names."""
ENDS = {Kind.IDLE: "idle_s", Kind.SESSION: "session_s"}
PLACES = {Kind.SESSIONS: "max_sessions", Kind.SESSIONS_OF_KEY: "max_sessions_per_key"}
steps = st.integers(0, 256).map(lambda n: n / 64)
"""Seconds and amounts that floats hold exactly."""
sizes = st.integers(1, 20)


# --- what is spent at a rate --------------------------------------------------------------------


@given(sizes, sizes, st.lists(st.tuples(steps, steps.map(lambda n: 4 * n))))
def test_over_no_stretch_of_time_is_more_spent_than_the_burst_and_the_rate_allow(
    most: int, rate: int, asked: list[tuple[float, float]]
) -> None:
    """The plain definition: a spending is good if it is within the limits of every stretch."""
    now, bucket, spent = 0.0, Bucket(most, rate, 0.0), list[tuple[float, float]]()
    for pause, amount in asked:
        now += pause
        stretches = [
            sum(other for _, other in spent[first:]) + amount
            <= most + rate * (now - spent[first][0])
            for first in range(len(spent))
        ]
        good = amount <= most and all(stretches)
        wait = bucket.wait_s(amount, now)
        assert (wait == 0) == good
        assert (wait == math.inf) == (amount > most)
        if good:
            bucket.take(amount, now)
            spent.append((now, amount))


@given(sizes, sizes, steps, steps)
def test_after_the_wait_that_it_names_a_bucket_has_enough(
    most: int, rate: int, owed: float, asked: float
) -> None:
    bucket = Bucket(most, rate, 0.0)
    bucket.take(most + owed, 0.0)
    wait = bucket.wait_s(min(asked, most), 0.0)
    assert wait == pytest.approx((owed + min(asked, most)) / rate, abs=1e-3)
    assert bucket.wait_s(min(asked, most), wait) == 0
    assert wait < 0.01 or Bucket(most, rate, 0.0).wait_s(most, 0.0) == 0


@given(st.lists(st.floats(0, 100), min_size=1))
def test_a_clock_that_goes_back_gives_nothing_away(times: list[float]) -> None:
    bucket = Bucket(1e6, 1.0, times[0])
    bucket.take(1e6, times[0])
    level = 0.0
    for now in times:
        assert level <= bucket.level(now) <= max(times) - times[0] + 1e-6
        level = bucket.level(now)
    assert bucket.level(max(times)) == pytest.approx(max(times) - times[0], abs=1e-6)


@pytest.mark.anyio
@pytest.mark.parametrize("chunk_s", [0.02, 15.0])
async def test_audio_in_real_time_is_never_refused_and_a_dropout_can_be_made_good(
    chunk_s: float,
) -> None:
    limiter, begun = RateLimiter(ServerConfig(), Metrics()), anyio.current_time()

    async def send(seconds: float, pause_s: float) -> None:
        for _ in range(int(seconds / chunk_s)):
            await limiter.spend(Kind.MESSAGES, 1)
            await limiter.hear(chunk_s, 0.0)
            await anyio.sleep(pause_s)

    await send(60, chunk_s)
    await anyio.sleep(30)  # the network stands still; then everything comes at once
    await send(30, 0.0)
    assert anyio.current_time() - begun < 105


@pytest.mark.anyio
@pytest.mark.parametrize(("amount", "hint"), [(1e9, ""), (500, "try again in 2.5 s")])
async def test_who_would_wait_for_too_long_gets_an_error_that_says_for_how_long(
    amount: float, hint: str
) -> None:
    limiter, begun = RateLimiter(ServerConfig(messages_burst=500), Metrics()), anyio.current_time()
    await limiter.spend(Kind.MESSAGES, 500)
    with pytest.raises(ProtocolError) as caught:
        await limiter.spend(Kind.MESSAGES, amount)
    assert (caught.value.hint, caught.value.code) == (hint, "rate_limit_exceeded")
    await limiter.spend(Kind.MESSAGES, 200 * PATIENCE_S)
    assert anyio.current_time() - begun == pytest.approx(PATIENCE_S)


# --- the end of a session -----------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize(("messages", "said"), [(1, "nothing was heard"), (99, "lasts 60 s")])
async def test_a_session_ends_when_its_time_is_over_or_nothing_comes(
    messages: int, said: str
) -> None:
    limiter = RateLimiter(ServerConfig(idle_s=10, session_s=60, messages_burst=1), Metrics())

    async def send() -> None:
        for _ in range(messages):  # even a message that is refused is a sign of life
            await anyio.sleep(9)
            with pytest.raises(ProtocolError):
                await limiter.spend(Kind.MESSAGES, 2)

    begun = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(send)
        assert said in await limiter.over()
        assert anyio.current_time() - begun == pytest.approx(19 if messages == 1 else 60)
        tasks.cancel_scope.cancel()


# --- words --------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize(("kind", "limit"), {**ENDS, **PLACES, **RATES}.items())
async def test_a_refusal_names_its_limit_and_is_counted(kind: Kind, limit: str) -> None:
    roomy = ServerConfig(max_sessions=999, max_sessions_per_key=999, idle_s=999, session_s=9999)
    limits, metrics = replace(roomy, **{limit: 107}), Metrics()
    if kind in PLACES:
        admission = Admission(limits)
        admitted = [admission.admit("a") for _ in range(108)]
        refusal = next(one for one in admitted if isinstance(one, Refusal))
        assert refusal.reason is kind
        text = refusal.text
    else:
        limiter = RateLimiter(limits, metrics)
        text = await limiter.over() if kind in ENDS else limiter.charge(kind, 1e9)
        assert f'voiceloop_refused_total{{reason="{kind}"}} 1.0' in metrics.render()[0].decode()
    assert text is not None and "107" in text and "\n" not in text


def test_every_limit_is_used() -> None:
    named = {name for group in (ENDS, PLACES, RATES) for name in group.values()}
    elsewhere = {
        *("audio_backlog_s", "conversation_bytes", "drain_s", "max_parked_per_key"),
        *("messages_burst", "ping_s", "resume_s", "store"),
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
        assert isinstance(admitted, Refusal) and admitted.reason is expected
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
