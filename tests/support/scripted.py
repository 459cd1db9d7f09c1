"""Scripted engines for the virtual clock. Their results and costs are given, not computed.

They implement the protocols of `voiceloop.engines` and run on the `InlineRunner`, which gives a
`Timed` result after its cost has passed. The recogniser reads the words from the scripted user's
audio. This module knows neither scenarios nor the session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, TypeVar, cast

import numpy as np

from tests.support.runner import Timed
from tests.support.user import Lexicon
from voiceloop.asr.transcript import normalise
from voiceloop.asr.windowed import WindowedAsr
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.engines import AsrRequest, ConversationStanding, Steps
from voiceloop.errors import ConfigError
from voiceloop.languages import installed
from voiceloop.types import (
    Calibration,
    Clause,
    Past,
    Pcm,
    SpeechChunk,
    SpokenWord,
    TokenBurst,
    Tool,
    ToolCall,
    Word,
)

T = TypeVar("T")

NO_IDEA = ("I do not know.",)
"""The reply to texts without a scripted reply."""
AUDIBLE = 0.01
"""Amplitude above which a sound is speech; full scale is 1."""
AHEAD = 20
"""Number of steps of `ScriptedConversation.ahead` that only count. Each step after them gives a
reply that was begun ahead."""


class ScriptedFailure(RuntimeError):
    """A stage's error that the script has planned."""


class ScriptedVad:
    """A VAD that takes any sound above `AUDIBLE` for speech. In silence, what a filter leaves of an
    earlier sound stays below that level."""

    frame = 512

    def probability(self, pcm: Pcm) -> float:
        return 1.0 if np.abs(pcm).max() > AUDIBLE else 0.0

    def reset(self) -> None:
        pass


def _timed(value: object, cost: float) -> Any:
    """Return `value` as a result that the `InlineRunner` gives after `cost` seconds."""
    return Timed(value, cost)


@dataclass
class ScriptedAsr(WindowedAsr):
    """A recogniser that gives a word if nine tenths of the word lie in the window."""

    lexicon: Lexicon
    cost: float = 0.05
    """Seconds that a partial decode takes."""
    final_cost: float | None = None
    """Seconds that a final decode takes; None: as many as `cost`."""
    name: str = "scripted"
    max_window_s: float = 30.0
    languages: tuple[str, ...] = ("en", "fr")
    detected: Sequence[tuple[str, float]] = (("en", 1.0),)
    """Results of language detection (language, probability), one for each call; the last is
    repeated."""
    fail: Callable[[str], bool] = lambda text: False
    """A function that says whether the decode of a window with these words fails."""
    windows: list[tuple[int, bool]] = field(default_factory=list[tuple[int, bool]])
    """Number of samples of each decode and whether it was final, in order."""
    asked: list[str | None] = field(default_factory=list[str | None])
    """Language of each decode, in order."""

    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        self.windows.append((len(request.pcm), request.final))
        self.asked.append(request.language)
        words = self.lexicon.read(request.pcm, final=request.final)
        if self.fail(" ".join(word.text for word in words)):
            raise ScriptedFailure("the recogniser broke")
        own = request.final and self.final_cost is not None
        return _timed(words, cast(float, self.final_cost) if own else self.cost)

    def detect_language(self, pcm: Pcm) -> tuple[str, float]:
        first, *rest = self.detected
        self.detected = rest or (first,)
        return _timed(first, self.cost)


@dataclass
class ScriptedTurnModel:
    """A turn model that judges audio by the words in it."""

    lexicon: Lexicon
    chances: Mapping[str, float]
    """End probability for the words in the audio; 0.5 for other words."""
    cost: float = 0.02
    name: str = "scripted"
    silence_ms: int = 200
    window_s: float = 8.0

    def end_of_turn_probability(self, pcm: Pcm) -> float:
        said = canonical(" ".join(word.text for word in self.lexicon.read(pcm, final=True)))
        known = {canonical(text): probability for text, probability in self.chances.items()}
        return _timed(known.get(said, 0.5), self.cost)


def tokenise(text: str) -> list[str]:
    """Cut `text` into words, each with the space around it. Joined, they are `text` again."""
    return re.findall(r"\s*\S+\s*", text) or [text]


def bursts(text: str, words: int) -> list[str]:
    """Cut `text` into bursts of `words` words each. An empty text has none."""
    pieces = tokenise(text) if text else []
    return ["".join(pieces[at : at + words]) for at in range(0, len(pieces), words)]


@dataclass
class ScriptedLlm:
    """A language model that answers by a table. Each token of a reply is one word.

    Its fields are the script: results and durations of its methods.
    """

    replies: Mapping[str, Sequence[str | ToolCall]]
    """Bursts and calls of the reply to each text of the user. Capitals and punctuation do not
    matter."""
    burst_cost: float = 0.02
    """Seconds that one burst takes."""
    prefill_cost: float | None = None
    """Seconds that reading new words of the user takes; None: as many as `burst_cost`."""
    unread_cost: float = 0.0
    """Additional seconds that a reply takes if the user's text was not prefilled."""
    ahead_cost: float | None = None
    """Seconds of each step of work ahead; None: no reply is begun ahead."""
    name: str = "scripted"
    fingerprint: str = "scripted"
    metered: bool = False
    acts: bool = False
    calibrations: dict[str, Calibration | None] = field(
        default_factory=lambda: dict.fromkeys(installed(), Calibration(0.1, 0.02, 88))
    )
    borrowed: set[str] = field(default_factory=set[str])
    results: Mapping[str, Sequence[str | ToolCall]] = field(
        default_factory=dict[str, Sequence[str | ToolCall]]
    )
    """Bursts and calls after the results of tools, by the id of the last call, or else by the name
    of its tool."""
    end_of_turn: Mapping[str, float] = field(default_factory=dict[str, float])
    """End probability after each text of the user; unknown after others."""
    default: Sequence[str | ToolCall] = NO_IDEA
    """The reply to any other text."""
    fail: Callable[[str], bool] = lambda text: False
    """A function that says whether the reply to a text of the user fails."""
    system: str = ""
    log: list[tuple[str, object]] = field(default_factory=list[tuple[str, object]])
    """Calls of the conversations' methods, in order: what was called, and with which argument."""

    def conversation(
        self, *, system: str | None = None, seed: int | None = None
    ) -> ScriptedConversation:
        return ScriptedConversation(self)


def canonical(text: str) -> str:
    """Normalise `text`. Two texts with the same words give equal results."""
    return " ".join(filter(None, map(normalise, text.split())))


class ScriptedConversation:
    """A conversation with a `ScriptedLlm`. If a turn gets no reply, its words are answered together
    with those of the next turn."""

    effort: str | None = None
    parallel_calls = True

    def __init__(self, model: ScriptedLlm) -> None:
        self._model = model
        self._table = {canonical(text): reply for text, reply in model.replies.items()}
        self._ends = {
            canonical(text): probability for text, probability in model.end_of_turn.items()
        }
        self._turn = 0
        self._before = ""
        """The user's words in earlier turns that got no reply."""
        self._text = ""
        """The user's words in the present turn, as far as they have been read."""
        self._given: list[str | ToolCall] = []
        """Bursts and calls of the turn's last reply so far."""
        self._kept: bool | None = None
        """Whether anything of the turn's last reply stays in the history; None: the turn has no
        reply."""

    def prefill(self, text: str, turn: int) -> Steps[None]:
        model = self._model
        model.log.append(("prefill", text))
        self._begin(turn)
        known, self._text, self._kept = self._text.startswith(text), text, None
        cost = model.burst_cost if model.prefill_cost is None else model.prefill_cost
        yield _timed(None, 0.0 if known else cost)

    seed = None

    @property
    def standing(self) -> ConversationStanding:
        return ConversationStanding(end_probability=self._look_up(self._ends, None))

    def reply(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        self._model.log.append(("reply", text))
        yield from self._answer(text, turn, known=())

    def revise(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        self._model.log.append(("revise", text))
        yield from self._answer(text, turn, known=tuple(self._given))

    def recite(
        self, text: str, turn: int, reply: str, effect: ToolCall | None = None
    ) -> Steps[TokenBurst]:
        self._model.log.append(("recite", (text, reply)))
        self._begin(turn)
        self._text, self._kept = text, True
        self._given = [reply]
        yield _timed(_burst(reply, turn), 0.0)

    def catch_up(self) -> Steps[None]:
        self._model.log.append(("catch_up", self._turn))
        cost = self._model.prefill_cost
        yield _timed(None, self._model.burst_cost if cost is None else cost)

    def ahead(self, text: str, turn: int) -> Steps[int] | None:
        cost = self._model.ahead_cost
        if cost is None:
            return None
        log = self._model.log
        log.append(("ahead", text))
        known = len(log)  # any other request ends the work ahead
        steps = takewhile(lambda _: len(log) == known, range(1, AHEAD + 1))
        return (_timed(step, cost) for step in steps)

    def tool_results(
        self, returned: Sequence[tuple[ToolCall, str]], turn: int, say: str = ""
    ) -> Steps[TokenBurst | ToolCall]:
        self._model.log += [("tool_result", result) for _, result in returned]
        results, (call, _) = self._model.results, returned[-1]
        items = (say,) if say else results[call.call_id if call.call_id in results else call.name]
        yield from self._speak(items, turn, shared=0)

    def _begin(self, turn: int) -> None:
        """Close the previous exchange if `turn` is a new turn."""
        if turn == self._turn:
            return
        if self._kept is not None:
            self._before = "" if self._kept else f"{self._before} {self._text}".strip()
        self._turn, self._text, self._kept = turn, "", None
        self._given.clear()

    def _look_up(self, table: Mapping[str, T], default: T) -> T:
        """Return the entry for all unanswered words, or else for those of the turn, or else
        `default`."""
        text = canonical(f"{self._before} {self._text}")
        return table.get(text, table.get(canonical(self._text), default))

    def _answer(
        self, text: str, turn: int, known: Sequence[str | ToolCall]
    ) -> Steps[TokenBurst | ToolCall]:
        model = self._model
        if model.fail(text):
            raise ScriptedFailure("the language model broke")
        self._begin(turn)
        unread, self._text, self._kept = text != self._text, text, False
        self._given.clear()
        if unread and model.unread_cost:
            yield _timed(None, model.unread_cost)
        items = self._look_up(self._table, model.default)
        same = takewhile(lambda pair: pair[0] == pair[1], zip(items, known, strict=False))
        yield from self._speak(items, turn, shared=len(list(same)))

    def _speak(
        self, items: Sequence[str | ToolCall], turn: int, shared: int
    ) -> Steps[TokenBurst | ToolCall]:
        """Yield `items`. The first `shared` ones together take the time of one burst, because one
        pass accepts them all."""
        try:
            for index, item in enumerate(items):
                self._given.append(item)
                self._kept = True
                cost = 0.0 if 0 < index < shared else self._model.burst_cost
                if isinstance(item, ToolCall):
                    yield _timed(replace(item, turn=turn), cost)
                    continue
                burst = _burst(item, turn)
                drafted = len(burst.ids)
                yield _timed(replace(burst, drafted=drafted, accepted=drafted // 2), cost)
        finally:
            self._model.log.append(("reply closed", turn))

    def heard(self, tokens: int) -> str:
        self._model.log.append(("heard", tokens))
        if self._kept is None:
            return ""
        self._kept = tokens > 0
        said = [piece for item in self._given if isinstance(item, str) for piece in tokenise(item)]
        return "".join(said[:tokens])

    def rewrite(
        self,
        system: str,
        past: Sequence[Past],
        tools: Sequence[Tool] = (),
        required: Collection[str] = (),
    ) -> None:
        del tools
        self._model.log.append(("rewrite", (system, tuple(past))))
        if required:
            self._model.log.append(("required", tuple(required)))
        self._begin(-1)
        self._turn, self._text, self._before, self._kept = None, "", "", None

    def calls(self, tools: Sequence[Tool]) -> bool:
        return True

    def opening(self, system: str, tools: Sequence[Tool]) -> tuple[int, int] | None:
        return None

    def close(self) -> None:
        self._model.log.append(("close", None))


def _burst(text: str, turn: int) -> TokenBurst:
    pieces = tokenise(text)
    ends = np.cumsum([len(piece) for piece in pieces]).tolist()
    return TokenBurst(turn, tuple(range(len(pieces))), text, ends=tuple(ends))


@dataclass
class ScriptedTts:
    """A synthesizer whose words all have the same length and the same level."""

    cost: float = 0.03
    """Seconds until a clause's first chunk."""
    step_cost: float | None = None
    """Seconds for each further chunk; None: as many as `cost`."""
    name: str = "scripted"
    rate: int = SPEECH_RATE
    speaks: str = "en"
    word_samples: int = SPEECH_RATE // 10
    chunk_words: int = 0
    """Number of words in a chunk; 0: the whole clause is one chunk."""
    fail: Callable[[Clause], bool] = lambda clause: False
    voice: str = "own"
    paces: bool = True
    spoken: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Voice and text of each clause, in order."""

    def voices(self) -> Sequence[str]:
        return (self.voice, "other")

    def check_voice(self, name: str) -> None:
        if name not in self.voices():
            raise ConfigError(f"there is no voice called '{name}'", "did you mean 'other'?")

    def language(self, voice: str | None = None) -> str:
        return self.speaks

    def synthesize(
        self, clause: Clause, voice: str | None = None, speed: float = 1.0
    ) -> Steps[SpeechChunk]:
        self.spoken.append((voice or self.voice, clause.text))
        if self.fail(clause):
            raise ScriptedFailure("the synthesizer broke")
        n, total = round(self.word_samples / speed), len(clause.spans)
        step = self.chunk_words or max(total, 1)
        for first in range(0, max(total, 1), step):
            chosen = range(first, min(first + step, total))
            words = tuple(SpokenWord(i * n, (i + 1) * n, i) for i in chosen)
            pcm = np.full(len(words) * n, 0.5, np.float32)
            last = first + step >= total
            chunk = SpeechChunk(clause.turn, clause, pcm, self.rate, first * n, words, last)
            later = first and self.step_cost is not None
            yield _timed(chunk, cast(float, self.step_cost) if later else self.cost)
