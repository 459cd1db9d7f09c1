"""Every store of sessions keeps what the rules of resuming stand on, and tells when it cannot."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager

import anyio
import pytest

from tests.server.serving import free_port, redis_server
from voiceloop.errors import ConfigError
from voiceloop.server.resume.store import (
    MemoryStore,
    RedisStore,
    Store,
    StoreError,
    change,
    open_store,
)

pytestmark = [pytest.mark.real, pytest.mark.anyio]


@pytest.fixture
def anyio_backend() -> str:
    """The clock is the true one, since the stores run in threads and processes of their own."""
    return "asyncio"


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with redis_server(tmp_path_factory.mktemp("redis")) as address:
        yield address


Opener = Callable[[], Store]


@asynccontextmanager
async def opened(*stores: Store) -> AsyncGenerator[tuple[Store, ...]]:
    yield stores
    for one in stores:
        await one.close()


@pytest.fixture(params=["memory", "redis"])
def open_one(request: pytest.FixtureRequest) -> Opener:
    """A function that opens the same store, for one server after the other."""
    if request.param == "memory":
        own = MemoryStore()
        return lambda: own
    address = request.getfixturevalue("redis")
    return lambda: open_store(address)


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


async def test_a_redis_that_hangs_or_is_gone_or_full_is_told(redis: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes connections, and says nothing
        async with opened(open_store(f"redis://127.0.0.1:{silent.getsockname()[1]}")) as (store,):
            with pytest.raises(StoreError, match="Timeout"):
                await store.read("one")
    async with opened(open_store(f"redis://127.0.0.1:{free_port()}")) as (store,):
        with pytest.raises(StoreError, match="Redis"):
            await store.read("one")
    async with opened(open_store(redis)) as (store,):
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
        ("file:///var/lib/sessions.db", "only Redis"),
        ("/var/lib/sessions.db", "only Redis"),
        ("ray://sessions", "only Redis"),
        ("redis://:secret-word@host:port", "no address of Redis"),
    ],
)
async def test_an_address_that_cannot_be_one_is_told_without_its_password(
    address: str, told: str
) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        open_store(address)
    assert caught.value.hint and "secret-word" not in f"{caught.value} {caught.value.hint}"
