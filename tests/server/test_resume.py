"""Resuming: a state machine of clients, broken connections, retries and thieves."""

from __future__ import annotations

import itertools
import pickle
from base64 import urlsafe_b64decode
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from voiceloop.server.resume import Grant, Loss, ResumableSession, ResumeFailure, Sessions

pytestmark = pytest.mark.pure

KEEP_S = 60.0
PER_KEY = 2
MOST = 3
KEYS = (None, "a", "b")


def counting() -> Callable[[int], bytes]:
    """Bytes that are never the same twice, and the same in every run."""
    numbers = itertools.count(1)
    return lambda size: next(numbers).to_bytes(size)


def sessions(keep_s: float = KEEP_S) -> Sessions[str, str]:
    return Sessions(keep_s, PER_KEY, MOST, random=counting())


def granted(result: Grant[str, str] | Loss[str, str]) -> Grant[str, str]:
    assert isinstance(result, Grant)
    return result


# --- any course of events, against a plain model ------------------------------------------------


@dataclass(eq=False)
class Modelled:
    """A session as one would explain it: who has it, which tokens open it, and which end it."""

    session: ResumableSession[str, int]
    payload: str
    key: str | None
    socket: int | None
    good: list[str]
    spent: list[str] = field(default_factory=list[str])
    deadline: float = 0.0
    place: int = 0
    """Its number among all that were parked."""


class Clients(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.random = counting()
        self.real: Sessions[str, int] = Sessions(KEEP_S, PER_KEY, MOST, random=self.random)
        self.there: list[Modelled] = []
        self.gone: list[Modelled] = []
        self.now = 0.0
        self.sockets, self.places = itertools.count(), itertools.count()

    def waiting(self, *keys: str | None) -> list[Modelled]:
        parked = [one for one in self.there if one.socket is None and one.key in keys]
        return sorted(parked, key=lambda one: one.place)

    def leave(self, one: Modelled) -> str:
        self.there.remove(one)
        self.gone.append(one)
        return one.payload

    @rule(key=st.sampled_from(KEYS))
    def begin(self, key: str | None) -> None:
        payload, socket = f"session {len(self.there) + len(self.gone)}", next(self.sockets)
        grant = self.real.begin(key, payload, socket)
        assert (grant.session.payload, grant.evicted) == (payload, None)
        self.there.append(Modelled(grant.session, payload, key, socket, [grant.token]))

    @rule(seconds=st.sampled_from([0.0, 1.0, 20.0, 59.0, 60.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.there)
    @rule(data=st.data())
    def break_off(self, data: st.DataObject) -> None:
        """A connection breaks, perhaps one that is not the session's any more."""
        one = data.draw(st.sampled_from(self.there))
        socket = data.draw(st.sampled_from([one.socket, -1]))
        expected = list[str]()
        if socket is not None and socket == one.socket:
            one.socket, one.deadline, one.place = None, self.now + KEEP_S, next(self.places)
            expected = [self.leave(other) for other in self.late()]
            expected += [self.leave(other) for other in self.waiting(one.key)[:-PER_KEY]]
            expected += [self.leave(other) for other in self.waiting(*KEYS)[:-MOST]]
        over = self.real.park(one.session, -1 if socket is None else socket, self.now)
        assert sorted(over) == sorted(expected)

    def late(self) -> list[Modelled]:
        return [one for one in self.there if one.socket is None and self.now >= one.deadline]

    @rule()
    def expire(self) -> None:
        expected = sorted(self.leave(one) for one in self.late())
        assert sorted(self.real.expire(self.now)) == expected

    @precondition(lambda self: self.there)
    @rule(data=st.data())
    def arrive(self, data: st.DataObject) -> None:
        """The answer to a ping comes, perhaps by a socket that is not the session's any more."""
        one = data.draw(st.sampled_from(self.there))
        socket = data.draw(st.sampled_from([one.socket, -1]))
        self.real.delivered(one.session, -1 if socket is None else socket)
        if socket is not None and socket == one.socket:
            one.spent += one.good[:-1]
            del one.good[:-1]

    @precondition(lambda self: self.there or self.gone)
    @rule(data=st.data(), same_key=st.booleans())
    def resume(self, data: st.DataObject, same_key: bool) -> None:
        """Somebody shows a token: a good one, or a spent one, or one of a session that is over."""
        one = data.draw(st.sampled_from(self.there + self.gone))
        token = data.draw(st.sampled_from(one.good + one.spent))
        key = one.key if same_key else "another"
        socket = next(self.sockets)
        late = one.socket is None and self.now >= one.deadline
        result = self.real.resume(token, key, socket, self.now)
        if not same_key or one in self.gone or late:
            assert result == Loss(ResumeFailure.UNKNOWN)
        elif token in one.spent:
            assert result == Loss(ResumeFailure.REPLAYED, one.payload, one.socket)
            self.leave(one)
        else:
            assert isinstance(result, Grant)
            assert result.session is one.session
            assert result.evicted == one.socket
            one.spent += [other for other in one.good if other != token]
            one.good = [token, result.token]
            one.socket = socket

    @precondition(lambda self: self.there)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(self.there + self.gone))
        socket = data.draw(st.sampled_from([one.socket, -1]))
        had = one in self.there and socket is not None and socket == one.socket
        assert self.real.end(one.session, -1 if socket is None else socket) == had
        if had:
            self.leave(one)

    @invariant()
    def counted(self) -> None:
        parked = [one for one in self.there if one.socket is None]
        assert self.real.parked == len(parked)
        assert self.real.connected == len(self.there) - len(parked)

    @invariant()
    def tokens_differ(self) -> None:
        tokens = [token for one in self.there + self.gone for token in one.good + one.spent]
        assert len(tokens) == len(set(tokens))


TestClients = Clients.TestCase
TestClients.settings = settings(max_examples=100, stateful_step_count=30)


# --- the rule of the stolen token ---------------------------------------------------------------


def test_a_client_that_misses_the_answer_comes_back_with_the_token_it_has() -> None:
    held = sessions()
    first = held.begin("a", "talk", "one")
    for socket, evicted in (("two", "one"), ("three", "two"), ("four", "three")):
        assert granted(held.resume(first.token, "a", socket, 0.0)).evicted == evicted


@pytest.mark.parametrize("first_to_come", ["thief", "owner"])
def test_whoever_comes_second_ends_it_for_both(first_to_come: str) -> None:
    held = sessions()
    stolen = held.begin("a", "talk", "old")
    second = "owner" if first_to_come == "thief" else "thief"
    taken = granted(held.resume(stolen.token, "a", first_to_come, 0.0))
    held.delivered(taken.session, first_to_come)
    assert held.resume(stolen.token, "a", second, 0.0) == Loss(
        ResumeFailure.REPLAYED, "talk", first_to_come
    )
    assert held.resume(taken.token, "a", first_to_come, 0.0) == Loss(ResumeFailure.UNKNOWN)
    assert (held.connected, held.parked) == (0, 0)


def test_a_thief_who_is_as_fast_as_the_owner_does_not_keep_the_session() -> None:
    """Both show the old token while it still works; the first answer that is through decides."""
    held = sessions()
    stolen = held.begin(None, "talk", "old")
    granted(held.resume(stolen.token, None, "thief", 0.0))
    grant = granted(held.resume(stolen.token, None, "owner", 0.0))
    assert grant.evicted == "thief"
    held.delivered(grant.session, "thief")  # too late: the socket has lost the session
    assert granted(held.resume(stolen.token, None, "thief", 0.0)).evicted == "owner"
    held.delivered(grant.session, "thief")
    assert isinstance(held.resume(stolen.token, None, "owner", 0.0), Loss)


def test_under_another_key_a_token_neither_opens_nor_ends_anything() -> None:
    held = sessions()
    grant = held.begin("a", "talk", "one")
    for key in ("b", None, ""):
        assert held.resume(grant.token, key, "two", 0.0) == Loss(ResumeFailure.UNKNOWN)
    assert granted(held.resume(grant.token, "a", "two", 0.0)).evicted == "one"


def test_to_resume_twice_by_one_socket_does_not_close_it() -> None:
    held = sessions()
    grant = held.begin("a", "talk", "one")
    again = granted(held.resume(grant.token, "a", "one", 0.0))
    assert again.evicted is None
    assert granted(held.resume(again.token, "a", "two", 0.0)).evicted == "one"


def test_a_socket_that_has_lost_its_session_can_do_nothing_to_it() -> None:
    """Whoever served it notices later than the client that it is dead."""
    held = sessions()
    grant = held.begin("a", "talk", "old")
    granted(held.resume(grant.token, "a", "new", 0.0))
    assert held.park(grant.session, "old", 0.0) == []
    assert not held.end(grant.session, "old")
    assert (held.connected, held.parked) == (1, 0)
    assert held.end(grant.session, "new")
    assert not held.end(grant.session, "new")


def test_a_session_that_was_resumed_waits_no_longer() -> None:
    held = sessions()
    grant = held.begin("a", "talk", "old")
    held.park(grant.session, "old", 0.0)
    granted(held.resume(grant.token, "a", "new", 1.0))
    assert (held.connected, held.parked) == (1, 0)
    assert held.expire(KEEP_S) == []


# --- time ---------------------------------------------------------------------------------------


@given(st.floats(0, 1e6), st.floats(0, 120))
def test_a_session_waits_for_as_long_as_it_was_told(start: float, later: float) -> None:
    held = sessions()
    grant = held.begin("a", "talk", "one")
    assert held.park(grant.session, "one", start) == []
    back = held.resume(grant.token, "a", "two", start + later)
    assert isinstance(back, Grant) == (start + later < start + KEEP_S)
    assert held.expire(start + later) == ([] if isinstance(back, Grant) else ["talk"])


def test_where_nothing_is_parked_a_broken_connection_is_the_end() -> None:
    held = sessions(keep_s=0.0)
    grant = held.begin("a", "talk", "one")
    assert held.park(grant.session, "one", 5.0) == ["talk"]
    assert held.resume(grant.token, "a", "two", 5.0) == Loss(ResumeFailure.UNKNOWN)
    assert (held.connected, held.parked) == (0, 0)


def test_of_one_key_the_oldest_goes() -> None:
    held = sessions()
    of = {name: held.begin(name[0], name, name) for name in ("a1", "a2", "a3", "b1")}
    gone = [held.park(of[name].session, name, 0.0) for name in ("a2", "b1", "a1", "a3")]
    assert gone == [[], [], [], ["a2"]]
    assert isinstance(held.resume(of["a1"].token, "a", "x", 0.0), Grant)


def test_of_all_keys_the_oldest_goes() -> None:
    held = sessions()
    of = {name: held.begin(name[0], name, name) for name in ("a1", "a2", "b1", "b2")}
    gone = [held.park(one.session, name, 0.0) for name, one in of.items()]
    assert gone == [[], [], [], ["a1"]]
    assert isinstance(held.resume(of["a2"].token, "a", "x", 0.0), Grant)


# --- tokens -------------------------------------------------------------------------------------


@given(st.text())
def test_no_text_is_a_token(text: str) -> None:
    held = sessions()
    held.begin(None, "talk", "one")
    assert held.resume(text, None, "two", 0.0) == Loss(ResumeFailure.UNKNOWN)


def test_a_token_that_was_changed_is_refused() -> None:
    """In its first half it finds nothing; in its second it finds the session, and ends it."""
    token = sessions().begin(None, "talk", "one").token
    both = len(urlsafe_b64decode(f"{token}="))
    assert both == 32
    for changed in [f"{token}=", f"{token}A", token[:-1], f" {token}", f"{token}\n", token[::-1]]:
        held = sessions()
        held.begin(None, "talk", "one")
        assert held.resume(changed, None, "two", 0.0) == Loss(ResumeFailure.UNKNOWN)
    for place in range(42):
        held = sessions()
        held.begin(None, "talk", "one")
        other = "A" if token[place] != "A" else "B"
        result = held.resume(token[:place] + other + token[place + 1 :], None, "two", 0.0)
        assert isinstance(result, Loss)
        assert result.reason is (ResumeFailure.UNKNOWN if place <= 21 else ResumeFailure.REPLAYED)


def test_tokens_are_random_and_not_kept() -> None:
    held: Sessions[str, str] = Sessions(KEEP_S, PER_KEY, MOST)
    grants = [held.begin(None, "talk", "one") for _ in range(100)]
    grants += [granted(held.resume(grant.token, None, "two", 0.0)) for grant in grants]
    assert len({grant.token[:21] for grant in grants}) == 100
    assert len({grant.token[22:] for grant in grants}) == 200
    kept = b"".join(
        getattr(grant.session, name) for grant in grants for name in ("finder", "current", "former")
    ) + pickle.dumps(list(held._found))
    for grant in grants:
        secret = urlsafe_b64decode(f"{grant.token}=")
        assert secret[:16] not in kept
        assert secret[16:] not in kept
