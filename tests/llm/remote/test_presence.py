"""One line tells that a server has gone, and one that it is back: on a virtual clock, and for real
over sockets."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from typing import cast

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.llm.remote.chatservers import Scripted, saying
from tests.llm.remote.test_remote import all_of, no_keys, no_threads, settings, spoken
from tests.server.serving import until
from tests.support.clock import VirtualClock
from voiceloop.llm.remote.chatclient import ChatClient
from voiceloop.llm.remote.chatserver import EVERY_S, LOADING, logger, told_to, watch
from voiceloop.llm.remote.errors import RequestError
from voiceloop.llm.remote.remote import openai
from voiceloop.llm.remote.servers import address

__all__ = ["no_keys", "no_threads"]

pytestmark = pytest.mark.real

GONE = "the language model has gone"
BACK = "the language model is back"


class Asked:
    """A client whose server answers as the statuses say: 200, one of HTTP's, or 0 for none."""

    def __init__(self, statuses: Sequence[int]) -> None:
        self.left = list(statuses)
        self.where = address("http://there:1", {})
        self.watched = True

    async def look_up(self) -> None:
        status = self.left.pop(0)
        if status != 200:
            raise RequestError(f"why {status}", "", status=status or None)


class Log(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@given(st.lists(st.sampled_from([0, LOADING]), max_size=5), st.sampled_from([200, 500, 404]))
def test_each_is_told_once_and_only_where_it_is_so(before: list[int], there: int) -> None:
    log, took = Log(), list[float]()

    async def run() -> None:
        await watch(cast(ChatClient, Asked([*before, there])))
        took.append(anyio.current_time())

    logger.addHandler(log)
    anyio.run(run, backend_options={"loop_factory": VirtualClock().loop})
    logger.removeHandler(log)
    if before:
        gone, back = log.lines
        assert gone.startswith(GONE) and gone.endswith(f"why {before[0]}")
        assert back == f"{BACK} at there:1"
    else:
        assert log.lines == []
    assert took[0] >= EVERY_S * len(before)


@pytest.fixture
def lines() -> Iterator[list[str]]:
    """What is told, while an event loop runs on another thread."""
    found, over, begun = list[str](), threading.Event(), threading.Event()

    async def run() -> None:
        async with told_to(found.append):
            begun.set()
            await anyio.to_thread.run_sync(over.wait)

    thread = threading.Thread(target=anyio.run, args=(run,))
    thread.start()
    begun.wait()
    yield found
    over.set()
    thread.join()


def test_a_server_that_goes_in_mid_conversation_is_told_of_and_so_is_its_return(
    lines: list[str],
) -> None:
    with Scripted(saying("Yes."), saying("Yes.")) as server:
        conversation, port = openai(settings(server)).conversation(), server.port
        assert spoken(all_of(conversation.reply("Are you there?", 1))) == "Yes."
    for turn in (2, 3):  # each turn fails, and one line tells why
        with pytest.raises(RequestError):
            all_of(conversation.reply("Are you there?", turn))
    until(lambda: len(lines) == 1)
    assert lines[0].startswith(GONE) and "does not answer: start it" in lines[0]
    with Scripted(saying("Here."), port=port):
        until(lambda: len(lines) == 2)
        assert lines[1] == f"{BACK} at 127.0.0.1:{port}"
        assert spoken(all_of(conversation.reply("Are you there?", 4))) == "Here."
        del conversation
    assert len(lines) == 2


def test_a_reply_that_breaks_off_at_a_server_that_is_there_is_no_farewell(
    lines: list[str],
) -> None:
    with Scripted(lambda request: request.drop()) as server:
        conversation = openai(settings(server)).conversation()
        with pytest.raises(RequestError, match="broke off"):
            all_of(conversation.reply("Are you there?", 1))
        until(lambda: [one.command for one in server.requests][-1] == "GET")
        server.plays = [saying("Yes.")]
        assert spoken(all_of(conversation.reply("Are you there?", 2))) == "Yes."
    assert lines == []


def test_whoever_gives_up_a_server_that_has_gone_waits_for_nothing() -> None:
    with Scripted(saying("Yes.")) as server:
        conversation = openai(settings(server)).conversation()
    with pytest.raises(RequestError):
        all_of(conversation.reply("Are you there?", 1))
    del conversation  # and `no_threads` looks whether the thread of its requests has ended
