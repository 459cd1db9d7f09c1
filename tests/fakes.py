"""Scripted engines for the virtual clock: what they give and cost is stated, not done.

They stand in at the Protocols of `voiceloop.engines` and run on the `InlineRunner`, which gives a
`Timed` result after its cost has passed. The user's audio carries its own transcript: word k of a
script sounds as a constant level of (k + 1) / 1000 + 0.1, so `ScriptedAsr` reads words, and where
they lie, from the samples alone.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import numpy as np

from voiceloop.engines import Steps
from voiceloop.runner import Timed
from voiceloop.types import (
    AudioFrame,
    Clause,
    Pcm,
    SpeechChunk,
    SpokenWord,
    TokenBurst,
    ToolCall,
    Word,
)

RATE = 16_000
FRAME = 320


@dataclass(frozen=True, slots=True)
class Utterance:
    """Words said from `start` (seconds of the stream), each `word_s` long."""

    start: float
    text: str
    word_s: float = 0.3

    @property
    def end(self) -> float:
        """When the last word is over."""
        return self.start + self.word_s * len(self.text.split())


@dataclass
class Script:
    """What the user says, and all words said so far, by level."""

    utterances: Sequence[Utterance]
    total_s: float
    words: list[str] = field(default_factory=list[str])

    def pcm(self) -> Pcm:
        """The user's whole stream."""
        pcm = np.zeros(round(self.total_s * RATE), np.float32)
        for utterance in self.utterances:
            at = utterance.start
            for word in utterance.text.split():
                self.words.append(word)
                level = 0.1 + len(self.words) / 1000
                pcm[round(at * RATE) : round((at + utterance.word_s) * RATE)] = level
                at += utterance.word_s
        return pcm

    async def frames(self) -> AsyncIterator[AudioFrame]:
        """The stream at real-time pace: each frame comes when its last sample has been."""
        pcm, begun = self.pcm(), anyio.current_time()
        for start in range(0, len(pcm), FRAME):
            await anyio.sleep_until(begun + (start + FRAME) / RATE)
            yield AudioFrame(pcm[start : start + FRAME], RATE, start)


class ScriptedVad:
    """Speech wherever there is any level."""

    frame = 512

    def probability(self, pcm: Pcm) -> float:
        return 1.0 if float(np.abs(pcm).max(initial=0.0)) > 0.05 else 0.0

    def reset(self) -> None:
        pass


@dataclass
class ScriptedAsr:
    """Reads the words that lie in the window to nine tenths."""

    script: Script
    cost: float = 0.05
    name: str = "scripted"
    max_window_s: float = 30.0
    windows: list[tuple[int, bool]] = field(default_factory=list[tuple[int, bool]])
    """Samples and finality of each decode, in order."""

    def transcribe(self, pcm: Pcm, *, final: bool) -> Sequence[Word]:
        self.windows.append((len(pcm), final))
        levels = np.round((pcm - 0.1) * 1000).astype(int)
        words: list[Word] = []
        for index in np.unique(levels[levels > 0]).tolist():
            at = np.flatnonzero(levels == index)
            if len(at) >= 0.9 * 0.3 * RATE:
                text = self.script.words[index - 1]
                words.append(Word(text, float(at[0]) / RATE, float(at[-1] + 1) / RATE))
        words.sort(key=lambda word: word.start)
        return cast("Any", Timed(words, self.cost))


@dataclass
class ScriptedConversation:
    """Answers by a table from the user's text to bursts; every reply token is one word."""

    replies: Mapping[str, Sequence[str | ToolCall]]
    burst_cost: float
    log: list[tuple[str, object]]
    results: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    said: list[str] = field(default_factory=list[str])
    """The words of the last reply."""

    def prefill(self, text: str, turn: int) -> Steps[None]:
        self.log.append(("prefill", text))
        yield cast("Any", Timed(None, self.burst_cost))

    def end_of_turn_probability(self) -> float | None:
        return None

    def reply(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        self.log.append(("reply", text))
        self.said.clear()
        yield from self._speak(self.replies.get(text, ("I do not know.",)), turn)

    def revise(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        self.log.append(("revise", text))
        self.said.clear()
        yield from self._speak(self.replies.get(text, ("I do not know.",)), turn)

    def tool_result(self, call: ToolCall, result: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        self.log.append(("tool_result", result))
        yield from self._speak(self.results[call.name], turn)

    def _speak(self, items: Sequence[str | ToolCall], turn: int) -> Steps[TokenBurst | ToolCall]:
        try:
            for item in items:
                if isinstance(item, str):
                    self.said += item.split()
                    ids = tuple(range(len(item.split())))
                    item = TokenBurst(turn, ids, item, drafted=len(ids), accepted=len(ids) // 2)
                yield cast("Any", Timed(item, self.burst_cost))
        finally:
            self.log.append(("reply closed", turn))

    def heard(self, tokens: int) -> str:
        self.log.append(("heard", tokens))
        return " ".join(self.said[:tokens])

    def close(self) -> None:
        self.log.append(("close", None))


@dataclass
class ScriptedLlm:
    """A model whose conversations follow the table."""

    replies: Mapping[str, Sequence[str | ToolCall]]
    burst_cost: float = 0.02
    name: str = "scripted"
    results: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    log: list[tuple[str, object]] = field(default_factory=list[tuple[str, object]])

    def conversation(self, *, system: str = "", seed: int = 0) -> ScriptedConversation:
        return ScriptedConversation(self.replies, self.burst_cost, self.log, self.results)


@dataclass
class ScriptedTts:
    """A tenth of a second for each word, at a constant level, in one chunk."""

    cost: float = 0.03
    name: str = "scripted"
    rate: int = RATE
    word_samples: int = RATE // 10
    fail: Callable[[Clause], bool] = lambda clause: False

    def synthesize(self, clause: Clause) -> Steps[SpeechChunk]:
        if self.fail(clause):
            raise RuntimeError("the synthesizer broke")
        n = self.word_samples
        words = tuple(
            SpokenWord(i * n, (i + 1) * n, span) for i, span in enumerate(range(len(clause.spans)))
        )
        pcm = np.full(len(words) * n, 0.5, np.float32)
        chunk = SpeechChunk(clause.turn, clause, pcm, self.rate, 0, words, last=True)
        yield cast("Any", Timed(chunk, self.cost))
