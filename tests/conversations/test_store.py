"""The store of conversations: what comes back, who may write, and what a damaged file does."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.server.serving import until
from voiceloop.conversations.keeping import kept
from voiceloop.conversations.records import KeptCall, KeptSummary, KeptTurn
from voiceloop.conversations.store import (
    VERSION,
    ConversationStore,
    fact_statement,
    location,
    row_of,
    summary_statement,
    turn_of,
    turn_statement,
)
from voiceloop.conversations.writer import ConversationWriter
from voiceloop.errors import VoiceloopError
from voiceloop.skills.known import Fact

pytestmark = pytest.mark.real

AT = datetime(2026, 11, 26, 10, 3, tzinfo=UTC)
TURN = KeptTurn(
    number=1, at=AT, ended=AT, language="en", said="Hello", replied="Hi there.", heard="Hi",
    kept="Hi", words=1, outcome="interrupted",
)  # fmt: skip
DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "garbage": lambda data: os.urandom(len(data)),
    "zeros": lambda data: bytes(len(data)),
    "half": lambda data: data[: len(data) // 2 - 100],
    "a page of noise": lambda data: data[:4096] + os.urandom(4096) + data[8192:],
    "a header alone": lambda data: data[:100],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "own" / "conversations.sqlite3"


@pytest.fixture
def told() -> list[str]:
    return []


def write(path: Path, *statements: object, name: str = "work") -> None:
    """Write into a conversation, as a process that has it open does."""
    store = ConversationStore(path, print)
    number, _ = store.claim(name)
    writer = ConversationWriter(store)
    for statement in statements:
        writer.write(statement(number))  # type: ignore[operator]
    writer.close()
    assert not writer.trouble


def a_turn(turn: KeptTurn, chars: int = 0) -> Callable[[int], object]:
    return lambda number: turn_statement(number, turn, chars)


times = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
texts = st.text(st.characters(exclude_categories=["Cs"]))
calls = st.builds(KeptCall, texts, st.dictionaries(texts, st.integers(-9, 9) | texts), texts)
over = st.sampled_from(["done", "silent", "interrupted", "failed"])
turns = st.builds(
    KeptTurn, number=st.integers(1, 10**9), at=times, ended=times, language=texts, said=texts,
    replied=texts, calls=st.lists(calls).map(tuple), words=st.integers(0, 10**6), heard=texts,
    kept=texts, outcome=over,
)  # fmt: skip


@given(turns)
def test_a_turn_comes_back_from_its_row_as_it_was(turn: KeptTurn) -> None:
    assert turn_of(row_of(turn, 0)) == turn


@given(turns, st.integers(0, 50))
def test_of_a_turn_that_never_ended_the_heard_part_comes_back(turn: KeptTurn, chars: int) -> None:
    sounding = replace(turn, outcome=None, ended=None)
    found = turn_of(row_of(sounding, chars))
    assert found.heard == found.kept == turn.replied[:chars] and found.cut


@settings(max_examples=15)
@given(st.lists(turns, max_size=5, unique_by=lambda turn: turn.number), st.lists(texts, max_size=3))
def test_what_was_written_is_read(some: list[KeptTurn], facts: list[str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.sqlite3"
        known = tuple(Fact(number, text) for number, text in enumerate(facts, 1))
        write(path, *map(a_turn, some), *(lambda n, f=fact: fact_statement(n, f) for fact in known))
        with closing(ConversationStore(path, print)) as store:
            record = store.record("work")
        assert record.turns == tuple(sorted(some, key=lambda turn: turn.number))
        assert record.facts == known


def test_a_conversation_goes_on_after_its_last_summary(path: Path) -> None:
    first, second = TURN, replace(TURN, number=2)
    summary = KeptSummary(1, "they met", AT)
    write(path, a_turn(first), a_turn(second), lambda n: summary_statement(n, summary))
    with closing(ConversationStore(path, print)) as store:
        _, resumed = store.claim("work")
    assert resumed.turns == (second,) and resumed.summary == summary and resumed.next_number == 3


def test_file_and_folder_are_their_owners_alone(path: Path) -> None:
    write(path, a_turn(TURN))
    with closing(ConversationStore(path, print)) as store:
        store.claim("other")
        there = [path.parent, *path.parent.rglob("*")]
        modes = [(one.is_dir(), stat.S_IMODE(one.stat().st_mode)) for one in there]
    assert set(modes) == {(True, 0o700), (False, 0o600)}


def test_a_file_that_others_could_read_is_closed_to_them(path: Path) -> None:
    write(path, a_turn(TURN))
    path.chmod(0o644)
    ConversationStore(path, print).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_set_aside_and_told(path: Path, kind: str, told: list[str]) -> None:
    write(path, *(a_turn(replace(TURN, number=n, said="word " * 200)) for n in range(1, 60)))
    damaged = DAMAGE[kind](path.read_bytes())
    path.write_bytes(damaged)
    with kept(path, "work", told.append) as found:
        assert not found.turns
    (line,) = told
    (aside,) = path.parent.glob("*.damaged-*")
    assert str(aside) in line and (aside / path.name).read_bytes() == damaged
    with closing(ConversationStore(path, told.append)) as store:
        assert [one.name for one in store.outlines()] == ["work"] and len(told) == 1


def test_a_text_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("my notes\n" * 1000)
    path.chmod(0o644)
    with pytest.raises(VoiceloopError, match="is no database"):
        ConversationStore(path, pytest.fail)
    assert path.read_text() == "my notes\n" * 1000
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [*path.parent.iterdir()] == [path]


def test_a_database_of_another_program_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE letters (text)")
    before = path.read_bytes()
    with pytest.raises(VoiceloopError, match="another program"):
        ConversationStore(path, print)
    assert path.read_bytes()[100:] == before[100:] and len(list(path.parent.iterdir())) == 1


def test_a_store_of_a_newer_voiceloop_is_left_alone(path: Path) -> None:
    write(path, a_turn(TURN))
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(VoiceloopError, match="newer voiceloop"):
        ConversationStore(path, print)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT said FROM turns").fetchall() == [("Hello",)]


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.claim("work"),
        lambda store: store.claim("other"),
        lambda store: store.forget("work", 1),
        lambda store: store.delete("work"),
    ],
)
def test_whoever_changes_an_older_store_stops_the_older_voiceloop(
    change: Callable[[ConversationStore], object], path: Path
) -> None:
    write(path, a_turn(TURN), lambda number: fact_statement(number, Fact(1, "a fact")))
    with closing(sqlite3.connect(path)) as database:
        database.execute(
            "CREATE TABLE leases (conversation INTEGER PRIMARY KEY"
            " REFERENCES conversations ON DELETE CASCADE, token TEXT NOT NULL)"
        )
        database.execute("INSERT INTO leases VALUES (1, 'older')")
        database.execute("PRAGMA user_version = 1")
        database.commit()
        with closing(ConversationStore(path, pytest.fail)) as store:
            assert len(store.outlines()) == 1
            database.execute("UPDATE leases SET token = 'older'")  # who reads stops nobody
            database.commit()
            change(store)
        assert database.execute("PRAGMA user_version").fetchone() == (VERSION,)
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            database.execute("UPDATE leases SET token = 'newer'")


@pytest.mark.parametrize("what", ["a folder", "a pipe", "under a file"])
def test_where_no_file_can_be_the_talk_goes_on_and_it_is_told(
    path: Path, what: str, told: list[str]
) -> None:
    if what == "a folder":
        path.mkdir(parents=True)
    elif what == "a pipe":
        path.parent.mkdir()
        os.mkfifo(path)
    else:
        path.parent.write_text("a file")
    with kept(path, "work", told.append) as found:
        assert not found.turns
    (line,) = told
    assert "not kept" in line and "\n" not in line


def test_a_full_disk_is_told_once_and_the_talk_goes_on(path: Path) -> None:
    store = ConversationStore(path, print)
    number, _ = store.claim("work")
    pages = store.database.execute("PRAGMA page_count").fetchone()[0]
    store.database.execute(f"PRAGMA max_page_count = {pages + 20}")
    writer = ConversationWriter(store)
    for n in range(1, 1000):
        writer.write(turn_statement(number, replace(TURN, number=n, said="long " * 500), 0))
    writer.close()
    assert "full" in writer.trouble
    ConversationStore(path, pytest.fail).close()  # nothing is damaged


def test_what_could_not_be_written_is_written_when_it_can_be(path: Path) -> None:
    with closing(ConversationStore(path, print)) as other:
        store = ConversationStore(path, print)
        number, _ = store.claim("work")
        store.database.execute("PRAGMA busy_timeout = 10")
        writer = ConversationWriter(store)
        other.database.execute("BEGIN IMMEDIATE")
        writer.write(turn_statement(number, replace(TURN, number=1), 0))
        until(lambda: "locked" in writer.trouble)
        other.database.execute("ROLLBACK")
        writer.write(turn_statement(number, replace(TURN, number=2), 0))
        until(lambda: not writer.trouble)
        writer.close()
        found = other.record("work")
        assert [turn.number for turn in found.turns] == [1, 2]


HOLD = """
import sys
from pathlib import Path
from voiceloop.conversations.keeping import kept
with kept(Path(sys.argv[1]), sys.argv[2], print) as found:
    print("open", flush=True)
    sys.stdin.readline()
"""


def holder(path: Path, name: str) -> subprocess.Popen[str]:
    """Another process that has a conversation open until it gets a line."""
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path), name],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert other.stdout and other.stdout.readline() == "open\n"
    return other


def test_opened_twice_is_told_and_nothing_is_overwritten(path: Path) -> None:
    write(path, a_turn(TURN))
    other = holder(path, "work")
    try:
        with (
            pytest.raises(VoiceloopError, match="open in another voiceloop") as told,
            kept(path, "work", print),
        ):
            pass
        assert told.value.hint and "\n" not in told.value.message
        with closing(ConversationStore(path, print)) as store:
            for change in (lambda: store.delete("work"), lambda: store.forget("work", 1)):
                with pytest.raises(VoiceloopError):
                    change()
            assert store.record("work").turns == (TURN,)
        with kept(path, "another", print):
            pass  # other conversations are free
    finally:
        other.communicate("end\n")
    with kept(path, "work", print) as found:
        assert tuple(found.turns) == (TURN,)


def test_a_second_store_in_one_process_does_not_unlock_the_first(path: Path) -> None:
    """Another process that reads in between would take the journal for its own to delete."""
    script = (
        "import sqlite3, sys; print(len(sqlite3.connect(sys.argv[1]).execute('{}').fetchall()))"
    )
    with closing(ConversationStore(path, print)) as first:
        ConversationStore(path, print).close()
        for count in range(1, 3):
            first.database.execute(
                "INSERT INTO conversations VALUES (?, ?, '', NULL)", (count, count)
            )
            counting = script.format("SELECT name FROM conversations")
            reader = [sys.executable, "-c", counting, str(path)]
            assert int(subprocess.check_output(reader)) == count


class OvertakenStore(ConversationStore):
    """A store in which the conversation is deleted before its lease is taken, the first time."""

    overtaken = False
    successor = ""
    """The name of a conversation that gets the number of the deleted one."""

    def _taken(self, number: int, name: str) -> sqlite3.Connection:
        if not self.overtaken:
            self.overtaken = True
            with closing(ConversationStore(self.path, print)) as other:
                other.delete(name)
                if self.successor:
                    assert other.claim(self.successor)[0] == number
        return super()._taken(number, name)


@pytest.mark.parametrize("successor", ["", "next"])
def test_a_conversation_that_is_deleted_while_it_is_opened_begins_anew(
    path: Path, successor: str
) -> None:
    write(path, a_turn(TURN))
    with closing(OvertakenStore(path, print)) as store:
        store.successor = successor
        _, resumed = store.claim("work")
        assert store.overtaken and not resumed.turns
        with (
            closing(ConversationStore(path, print)) as other,
            pytest.raises(VoiceloopError, match="open in another voiceloop"),
        ):
            other.delete("work")


def test_nothing_else_is_deleted_where_a_conversation_has_just_been_replaced(path: Path) -> None:
    write(path, a_turn(TURN))
    with closing(OvertakenStore(path, print)) as store:
        store.successor = "other"
        with pytest.raises(VoiceloopError, match="no conversation is named 'work'"):
            store.delete("work")
        assert [outline.name for outline in store.outlines()] == ["other"]


def test_the_lease_of_a_dead_process_is_taken_over(path: Path) -> None:
    write(path, a_turn(TURN))
    other = holder(path, "work")
    other.kill()
    other.communicate()
    with kept(path, "work", print) as found:
        assert tuple(found.turns) == (TURN,)


def test_deleted_words_are_gone_from_the_file(path: Path) -> None:
    secret = "xyzzy-secret-words"
    write(path, a_turn(replace(TURN, said=secret)))
    assert secret.encode() in path.read_bytes()
    with closing(ConversationStore(path, print)) as store:
        store.delete("work")
    assert not any(
        secret.encode() in file.read_bytes()
        for file in path.parent.glob("*.sqlite3*")
        if file.is_file()
    )


def test_the_file_is_where_the_user_says(tmp_path: Path) -> None:
    assert location({"VOICELOOP_CONVERSATIONS": "/a/b"}) == Path("/a/b")
    assert location({"XDG_DATA_HOME": "/data"}) == Path("/data/voiceloop/conversations.sqlite3")
    assert location({}) == Path.home() / ".local/share/voiceloop/conversations.sqlite3"
