"""The speaking stages on the virtual clock: what overlaps, and what closing them gives back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import anyio
import pytest

from tests.support.scripted import ScriptedTts
from voiceloop.engines import Runner, Tts
from voiceloop.languages.en import ENGLISH
from voiceloop.runner import InlineRunner
from voiceloop.tts.stream import clauses
from voiceloop.types import Clause, SpeechChunk, TokenBurst

pytestmark = [pytest.mark.virtual, pytest.mark.anyio]

REPLY = ("Sure, here", " it is, my", " friend. Now", " I am done.")
STEP = 0.1


async def written(texts: Sequence[str]) -> AsyncGenerator[TokenBurst]:
    """A burst every `STEP` seconds."""
    for index, text in enumerate(texts):
        await anyio.sleep(STEP)
        yield TokenBurst(3, (index,), text, ends=(len(text),))


async def speak(
    bursts: AsyncGenerator[TokenBurst, None], tts: Tts, runner: Runner
) -> AsyncGenerator[SpeechChunk, None]:
    """Both stages, one behind the other."""
    async with aclosing(clauses(bursts, ENGLISH)) as cut:
        async for clause in cut:
            async with aclosing(runner.stream(tts.synthesize(clause))) as chunks:
                async for chunk in chunks:
                    yield chunk


async def test_a_clause_leaves_as_soon_as_it_is_cut() -> None:
    begun = anyio.current_time()
    left = [
        (round(anyio.current_time() - begun, 6), clause.text, clause.last)
        async for clause in clauses(written(REPLY), ENGLISH)
    ]
    assert left == [
        (0.2, "Sure, here it is,", False),
        (0.3, " my friend.", False),
        (0.4, " Now I am done.", True),
    ]


async def test_the_first_sound_comes_while_the_reply_is_still_being_written() -> None:
    tts = ScriptedTts(cost=0.03)
    begun = anyio.current_time()
    heard = [
        (round(anyio.current_time() - begun, 6), chunk.clause.index)
        async for chunk in speak(written(REPLY), tts, InlineRunner())
    ]
    assert heard == [(0.23, 0), (0.36, 1), (0.49, 2)]


async def test_speaking_stage_by_stage_gives_the_same_as_all_at_once() -> None:
    tts, runner = ScriptedTts(), InlineRunner()
    together = [chunk async for chunk in speak(written(REPLY), tts, runner)]
    cut = [clause async for clause in clauses(written(REPLY), ENGLISH)]
    apart = [chunk for clause in cut async for chunk in runner.stream(tts.synthesize(clause))]
    assert [(c.clause, c.words, len(c.pcm)) for c in together] == [
        (c.clause, c.words, len(c.pcm)) for c in apart
    ]


@pytest.mark.parametrize("texts", [(), ("",), (" ", "\n")])
async def test_a_reply_without_words_ends_at_once(texts: Sequence[str]) -> None:
    cut = [clause async for clause in clauses(written(texts), ENGLISH)]
    assert [(clause.spoken, clause.last) for clause in cut] == [("", True)] * bool(texts)


async def test_closing_the_stage_leaves_the_engine_to_the_next_reply() -> None:
    tts, runner = ScriptedTts(), InlineRunner()
    async with aclosing(written(REPLY)) as bursts, aclosing(speak(bursts, tts, runner)) as chunks:
        async for _ in chunks:
            break
    heard = [chunk async for chunk in speak(written(REPLY), tts, runner)]
    assert [chunk.clause.index for chunk in heard] == [0, 1, 2]


async def test_a_failure_of_the_engine_reaches_the_listener() -> None:
    def second(clause: Clause) -> bool:
        return clause.index == 1

    tts, heard = ScriptedTts(fail=second), list[int]()
    async with aclosing(written(REPLY)) as bursts:
        with pytest.raises(RuntimeError, match="broke"):
            async for chunk in speak(bursts, tts, InlineRunner()):
                heard.append(chunk.clause.index)
    assert heard == [0]
