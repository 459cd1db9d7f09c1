"""Who has a session: any course of clients, broken connections, servers that die, and thieves."""

from __future__ import annotations

import itertools
from base64 import urlsafe_b64decode
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from voiceloop.server.resume.sessions import (
    LEASE_S,
    Holding,
    Refused,
    ResumeFailure,
    Sessions,
    Taken,
)
from voiceloop.server.resume.store import MemoryStore

pytestmark = pytest.mark.pure

KEEP_S = 60.0
PER_KEY = 2
KEYS = (None, "a", "b")
UNKNOWN = Refused(ResumeFailure.UNKNOWN)
T = TypeVar("T")


class Store(MemoryStore):
    """The store in memory, by a clock that tests set."""

    time = 0.0

    def now(self) -> float:
        return self.time


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits, as all are on a store in memory."""
    with pytest.raises(StopIteration) as done:
        work.send(None)
    return done.value.value


def counting() -> Callable[[int], bytes]:
    """Bytes that are never the same twice, and the same in every run."""
    numbers = itertools.count(1)
    return lambda size: next(numbers).to_bytes(size)


class Server:
    """One of several servers that share a store; it may be the only one."""

    def __init__(self, store: Store | None = None, keep_s: float = KEEP_S) -> None:
        self.store = store or Store()
        self.sessions = Sessions(self.store, keep_s, PER_KEY, random=counting())

    def begin(self, key: str | None = "a", state: bytes = b"talk") -> tuple[Holding, str]:
        return at_once(self.sessions.begin(key, state))

    def take(self, token: str, key: str | None = "a") -> Taken | Refused:
        return at_once(self.sessions.take(token, key))

    def taken(self, token: str, key: str | None = "a") -> Taken:
        found = self.take(token, key)
        assert isinstance(found, Taken)
        return found

    def arrived(self, holding: Holding) -> bool:
        holding.arrived()
        return at_once(self.sessions.save(holding, holding.record.state))

    def save(self, holding: Holding, state: bytes) -> bool:
        return at_once(self.sessions.save(holding, state))

    def renew(self, holding: Holding) -> bool:
        return at_once(self.sessions.renew(holding))

    def park(self, holding: Holding, state: bytes = b"talk") -> list[str] | None:
        return at_once(self.sessions.park(holding, state))

    def end(self, holding: Holding) -> None:
        at_once(self.sessions.end(holding))

    def admit(self, key: str | None, server: str, clients: int, most: float) -> bool:
        return at_once(self.sessions.admit(key, server, clients, most))


# --- any course of events, against a plain model ------------------------------------------------


@dataclass(eq=False)
class Modelled:
    """A session as one would explain it: who holds it, which tokens open it, and which end it."""

    holding: Holding
    key: str | None
    good: list[str]
    state: bytes
    ends: float
    spent: list[str] = field(default_factory=list[str])
    lost: list[Holding] = field(default_factory=list[Holding])
    parked: int | None = None
    """Its number among all that were parked; None while it is held."""


class Clients(RuleBasedStateMachine):
    """Clients of two servers that share a store."""

    def __init__(self) -> None:
        super().__init__()
        self.store, self.random = Store(), counting()
        self.servers = [Server(self.store), Server(self.store)]
        for server in self.servers:
            server.sessions = Sessions(self.store, KEEP_S, PER_KEY, random=self.random)
        self.there: list[Modelled] = []
        self.gone: list[Modelled] = []
        self.places, self.states = itertools.count(), itertools.count()

    def held_until(self) -> float:
        return self.store.time + KEEP_S + LEASE_S

    def leave(self, one: Modelled) -> None:
        self.there.remove(one)
        self.gone.append(one)

    def drop_late(self) -> None:
        for one in [one for one in self.there if self.store.time >= one.ends]:
            self.leave(one)

    @rule(key=st.sampled_from(KEYS), server=st.integers(0, 1))
    def begin(self, key: str | None, server: int) -> None:
        state = b"%d" % next(self.states)
        holding, token = self.servers[server].begin(key, state)
        self.there.append(Modelled(holding, key, [token], state, self.held_until()))

    @rule(seconds=st.sampled_from([0.0, 1.0, 20.0, 59.0, 60.0]))
    def wait(self, seconds: float) -> None:
        """Time passes; servers that live keep what they hold, the first of them only for now."""
        self.store.time += seconds
        self.drop_late()

    @precondition(lambda self: self.there)
    @rule(data=st.data(), server=st.integers(0, 1))
    def renew(self, data: st.DataObject, server: int) -> None:
        one = data.draw(st.sampled_from(self.there))
        if one.parked is None:
            assert self.servers[server].renew(one.holding)
            one.ends = self.held_until()

    @precondition(lambda self: self.there)
    @rule(data=st.data(), server=st.integers(0, 1))
    def save(self, data: st.DataObject, server: int) -> None:
        one = data.draw(st.sampled_from(self.there))
        if one.parked is None:
            one.state = b"%d" % next(self.states)
            assert self.servers[server].save(one.holding, one.state)
            one.ends = self.held_until()

    @precondition(lambda self: any(one.lost for one in self.there))
    @rule(data=st.data(), server=st.integers(0, 1))
    def come_late(self, data: st.DataObject, server: int) -> None:
        """Whoever has lost a session can do nothing to it, and is told."""
        one = data.draw(st.sampled_from([one for one in self.there if one.lost]))
        late, at = data.draw(st.sampled_from(one.lost)), self.servers[server]
        assert not at.save(late, b"stale")
        assert not at.arrived(late)
        assert not at.renew(late)
        assert at.park(late, b"stale") is None
        at.end(late)

    @precondition(lambda self: self.there)
    @rule(data=st.data(), server=st.integers(0, 1))
    def break_off(self, data: st.DataObject, server: int) -> None:
        one = data.draw(st.sampled_from(self.there))
        if one.parked is not None:
            return
        one.parked, one.ends = next(self.places), self.store.time + KEEP_S
        waiting = [other for other in self.there if other.parked is not None]
        of_key = sorted(
            (other for other in waiting if other.key == one.key),
            key=lambda other: other.parked or 0,
        )
        over = self.servers[server].park(one.holding, one.state)
        assert over == [other.holding.name for other in of_key[:-PER_KEY]]
        for other in of_key[:-PER_KEY]:
            self.leave(other)

    @precondition(lambda self: self.there)
    @rule(data=st.data(), server=st.integers(0, 1))
    def arrive(self, data: st.DataObject, server: int) -> None:
        one = data.draw(st.sampled_from(self.there))
        if one.parked is None:
            assert self.servers[server].arrived(one.holding)
            one.ends = self.held_until()
            one.spent += one.good[:-1]
            del one.good[:-1]

    @precondition(lambda self: self.there or self.gone)
    @rule(data=st.data(), same_key=st.booleans(), server=st.integers(0, 1))
    def take(self, data: st.DataObject, same_key: bool, server: int) -> None:
        """Somebody shows a token: a good one, or a spent one, or one of a session that is over."""
        one = data.draw(st.sampled_from(self.there + self.gone))
        token = data.draw(st.sampled_from(one.good + one.spent))
        key = one.key if same_key else "another"
        result = self.servers[server].take(token, key)
        if not same_key or one in self.gone:
            assert result == UNKNOWN
        elif token in one.spent:
            assert result == Refused(ResumeFailure.REPLAYED, one.holding.name)
            self.leave(one)
        else:
            assert isinstance(result, Taken)
            assert result.former == one.holding.record.current
            assert result.holding.record.state == one.state
            one.lost.append(one.holding)
            one.holding = result.holding
            one.spent += [other for other in one.good if other != token]
            one.good = [token, result.token]
            one.parked, one.ends = None, self.held_until()

    @precondition(lambda self: self.there)
    @rule(data=st.data(), server=st.integers(0, 1))
    def end(self, data: st.DataObject, server: int) -> None:
        one = data.draw(st.sampled_from(self.there))
        self.servers[server].end(one.holding)
        self.leave(one)


TestClients = Clients.TestCase
TestClients.settings = settings(max_examples=100, stateful_step_count=30)


# --- the rule of the stolen token ---------------------------------------------------------------


def test_a_thief_who_is_as_fast_as_the_owner_does_not_keep_the_session() -> None:
    """Both show the old token while it still works; the first answer that is through decides."""
    server = Server()
    _, stolen = server.begin()
    thief = server.taken(stolen)
    owner = server.taken(stolen)
    assert owner.former == thief.holding.record.current
    assert not server.arrived(thief.holding), "too late: the session is the owner's"
    assert server.arrived(owner.holding)
    assert isinstance(server.take(stolen), Refused)


# --- a store that loses something, or is slow to tell ---------------------------------------------


def test_what_the_store_has_lost_is_written_again() -> None:
    store = Store()
    server = Server(store)
    holding, token = server.begin()
    store.time += KEEP_S + LEASE_S  # as if it had been emptied
    assert server.take(token) == UNKNOWN
    assert server.renew(holding)
    assert isinstance(server.take(token), Taken)


def test_a_write_whose_answer_is_lost_does_not_lose_the_session() -> None:
    server = Server()
    holding, token = server.begin()
    before = holding.stored
    assert server.save(holding, b"more")
    holding.stored = before  # as if the answer had not come
    assert server.save(holding, b"still more")
    assert server.taken(token).holding.record.state == b"still more"


# --- time ---------------------------------------------------------------------------------------


# --- the limits of a key --------------------------------------------------------------------------


def test_the_clients_of_a_key_are_counted_over_all_servers() -> None:
    store = Store()
    one = Server(store)
    assert one.admit("a", "east", 2, 3)
    assert one.admit("a", "west", 1, 3)
    assert not one.admit("a", "west", 2, 3)
    assert one.admit("b", "west", 2, 3)
    assert one.admit("a", "east", 1, 3)
    assert one.admit("a", "west", 2, 3)


def test_a_server_that_died_has_no_clients_after_a_while() -> None:
    store = Store()
    one = Server(store)
    assert one.admit("a", "east", 3, 3)
    assert not one.admit("a", "west", 1, 3)
    store.time += LEASE_S
    assert one.admit("a", "west", 1, 3)


# --- tokens -------------------------------------------------------------------------------------


@given(st.text())
def test_no_text_is_a_token(text: str) -> None:
    server = Server()
    server.begin()
    assert server.take(text) == UNKNOWN


def test_tokens_are_random_and_not_kept() -> None:
    store = Store()
    sessions = Sessions(store, KEEP_S, 1000)
    tokens = [at_once(sessions.begin(None, b""))[1] for _ in range(100)]
    for token in tokens[:100]:
        taken = at_once(sessions.take(token, None))
        assert isinstance(taken, Taken)
        tokens.append(taken.token)
    assert len({token[:21] for token in tokens}) == 100
    assert len({token[22:] for token in tokens}) == 200
    kept = repr(store.__dict__).encode()
    for token in tokens:
        secret = urlsafe_b64decode(f"{token}=")
        for half in (secret[:16], secret[16:]):
            assert repr(half)[2:-1].encode() not in kept
            assert half.hex().encode() not in kept
