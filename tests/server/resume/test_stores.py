"""Every store of sessions keeps what the rules of resuming stand on, and tells when it cannot."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.conftest import lacking
from tests.server.serving import free_port
from voiceloop.errors import ConfigError
from voiceloop.server.resume.redis import RedisStore, redis_store
from voiceloop.server.resume.store import MemoryStore, Store, StoreError, change
from voiceloop.server.resume.stores import SqliteStore, open_store

pytestmark = [pytest.mark.real, pytest.mark.anyio]


@pytest.fixture
def anyio_backend() -> str:
    """The clock is the true one, since the stores run in threads and processes of their own."""
    return "asyncio"


@pytest.fixture(scope="module")
def redis_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a Redis of our own, which writes nothing to the disk."""
    program = shutil.which("redis-server")
    if program is None:
        lacking("the program redis-server is not installed (make test says how)")
    port = free_port()
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    folder = tmp_path_factory.mktemp("redis")
    with subprocess.Popen([program, *options], cwd=folder, stdout=subprocess.DEVNULL) as process:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield port
        process.terminate()


Opener = Callable[[], Store]


@asynccontextmanager
async def opened(*stores: Store) -> AsyncGenerator[tuple[Store, ...]]:
    yield stores
    for one in stores:
        await one.close()


@pytest.fixture(params=["memory", "sqlite", "redis"])
def open_one(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """A function that opens the same store, for one server after the other."""
    match request.param:
        case "memory":
            own = MemoryStore()
            return lambda: own
        case "sqlite":
            return lambda: open_store(str(tmp_path / "sessions.db"))
        case _:
            port = request.getfixturevalue("redis_port")
            return lambda: open_store(f"redis://127.0.0.1:{port}/0")


def name() -> str:
    return f"one:{os.urandom(8).hex()}"


async def test_what_one_server_writes_another_reads(open_one: Opener) -> None:
    value = bytes(range(256)) * 1000
    async with opened(open_one(), open_one()) as (here, there):
        of = name()
        assert await here.read(of) is None
        stored = await here.swap(of, None, value, 60)
        assert stored is not None
        assert stored.value == value
        assert await there.read(of) == stored
        assert await there.read(name()) is None


async def test_only_who_has_seen_the_value_replaces_it(open_one: Opener) -> None:
    async with opened(open_one(), open_one()) as (here, there):
        of = name()
        first = await here.swap(of, None, b"first", 60)
        assert first is not None
        assert await there.swap(of, None, b"second", 60) is None
        second = await there.swap(of, first, b"second", 60)
        assert second is not None
        assert await here.swap(of, first, b"third", 60) is None
        assert not await here.touch(of, first, 60)
        assert await here.touch(of, second, 60)
        assert await here.read(of) == second
        # The same bytes once more are another value.
        again = await here.swap(of, second, b"second", 60)
        assert await there.swap(of, second, b"third", 60) is None
        assert await there.read(of) == again


async def test_a_value_lasts_as_long_as_it_was_told(open_one: Opener) -> None:
    async with opened(open_one()) as (store,):
        short, long = name(), name()
        first = await store.swap(short, None, b"short", 0.3)
        second = await store.swap(long, None, b"long", 0.3)
        assert first is not None and second is not None
        assert await store.touch(long, second, 60)
        await anyio.sleep(0.5)
        assert await store.read(short) is None
        assert not await store.touch(short, first, 60)
        assert await store.swap(short, first, b"late", 60) is None
        assert await store.swap(short, None, b"anew", 60) is not None
        assert await store.read(long) == second


async def test_changes_at_the_same_time_all_count(open_one: Opener) -> None:
    async with opened(open_one(), open_one()) as both:
        of = name()

        async def count(store: Store) -> None:
            for _ in range(5):
                await change(
                    store, of, lambda value: (str(int(value or b"0") + 1).encode(), None), 60
                )

        async with anyio.create_task_group() as tasks:
            for number in range(6):
                tasks.start_soon(count, both[number % 2])
        stored = await both[0].read(of)
        assert stored is not None
        assert stored.value == b"30"


# ---- a store that is gone, full, slow


async def test_a_file_is_the_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    async with opened(SqliteStore(str(path))) as (store,):
        await store.swap("one", None, b"words", 60)
        for file in list(tmp_path.iterdir()):  # noqa: ASYNC240
            assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


async def test_a_file_that_was_removed_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    async with opened(SqliteStore(str(path)), SqliteStore(str(path))) as (here, there):
        stored = await here.swap("one", None, b"words", 60)
        for file in list(tmp_path.iterdir()):  # noqa: ASYNC240
            file.unlink()
        assert await here.read("one") is None
        assert stored is not None and not await there.touch("one", stored, 60)
        anew = await there.swap("one", None, b"more words", 60)
        assert await here.read("one") == anew


async def test_a_folder_that_was_removed_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    async with opened(SqliteStore(str(folder / "sessions.db"))) as (store,):
        shutil.rmtree(folder)
        with pytest.raises(StoreError, match=r"sessions\.db"):
            await store.read("one")


async def test_a_full_file_is_told_and_keeps_what_it_has(tmp_path: Path) -> None:
    async with opened(SqliteStore(str(tmp_path / "sessions.db"))) as (store,):
        assert isinstance(store, SqliteStore)
        kept = await store.swap("one", None, b"words", 60)
        store._database.execute("PRAGMA max_page_count = 8")
        with pytest.raises(StoreError, match="full"):
            await store.swap("two", None, bytes(100_000), 60)
        assert await store.read("one") == kept


async def test_a_file_that_somebody_holds_is_told(tmp_path: Path) -> None:
    path = str(tmp_path / "sessions.db")
    async with opened(SqliteStore(path), SqliteStore(path)) as (here, there):
        assert isinstance(there, SqliteStore)
        kept = await here.swap("one", None, b"words", 60)
        there._database.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"locked|did not answer"):
            await here.swap("one", kept, b"more", 60)
        assert await here.read("one") == kept
        there._database.execute("ROLLBACK")
        assert await here.swap("one", kept, b"more", 60) is not None


async def test_a_redis_that_hangs_or_is_gone_or_full_is_told(redis_port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes connections, and says nothing
        async with opened(redis_store(f"redis://127.0.0.1:{silent.getsockname()[1]}")) as (store,):
            with pytest.raises(StoreError, match="Timeout"):
                await store.read("one")
    async with opened(redis_store(f"redis://127.0.0.1:{free_port()}")) as (store,):
        with pytest.raises(StoreError, match="Redis"):
            await store.read("one")
    async with opened(redis_store(f"redis://127.0.0.1:{redis_port}")) as (store,):
        assert isinstance(store, RedisStore)
        await store._client.config_set("maxmemory", "1mb")
        try:
            with pytest.raises(StoreError, match="maxmemory"):
                await store.swap(name(), None, bytes(10_000), 60)
        finally:
            await store._client.config_set("maxmemory", "0")


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("mongodb://somewhere", "mongodb://…"),
        ("redis://host:port", "no address of Redis"),
        ("/proc/none/sessions.db", "/proc/none/sessions.db"),
        (__file__, "not a database"),
    ],
)
async def test_an_address_that_cannot_be_one_is_told(address: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        open_store(address)
    assert caught.value.hint


async def test_a_password_is_never_told() -> None:
    with pytest.raises(ConfigError) as caught:
        open_store("redis://:secret-word@host:port")
    assert "secret-word" not in f"{caught.value} {caught.value.hint}"
