"""The values that flow between stages: frozen, small, and free of behaviour.

Every value that is born in a turn carries that turn's number, and consumers drop what is not
current; that keeps cancellation right even for what is already in flight. This module imports
numpy and nothing else.

Time is counted in samples of the stream that a value belongs to wherever audio is concerned, and
in seconds of the event loop's clock where something is timed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

Pcm = npt.NDArray[np.float32]
"""Mono audio, float32 in [-1, 1], shape [samples]."""

Outcome = Literal["done", "silent", "interrupted", "failed", "abandoned"]
"""How a turn ended; `silent`: it was answered with nothing that can be said."""


@dataclass(frozen=True, slots=True)
class AudioFrame:
    """A short piece of a stream of audio."""

    pcm: Pcm
    rate: int
    """Hertz."""
    start: int
    """Index of the first sample since the stream began."""

    @property
    def end(self) -> int:
        """Index of the sample after the last."""
        return self.start + len(self.pcm)


@dataclass(frozen=True, slots=True)
class Word:
    """A recognised word as written, with its punctuation."""

    text: str
    start: float
    """Seconds since the stream began."""
    end: float
    """Seconds since the stream began."""
    probability: float = 1.0


@dataclass(frozen=True, slots=True)
class Transcript:
    """What the user has said in a turn, as far as it is known."""

    turn: int
    revision: int
    """Grows by one with every transcript of the turn."""
    committed: tuple[Word, ...]
    """Words that no later partial takes back."""
    tentative: tuple[Word, ...] = ()
    """Words that may still change."""
    final: bool = False
    """True once every sample before the endpoint has been decoded; then nothing is tentative."""

    @property
    def text(self) -> str:
        """All words, committed and tentative."""
        return " ".join(word.text for word in self.committed + self.tentative)

    @property
    def committed_text(self) -> str:
        """The committed words alone."""
        return " ".join(word.text for word in self.committed)


@dataclass(frozen=True, slots=True)
class TokenBurst:
    """The tokens that one verify step of the target model accepted."""

    turn: int
    ids: tuple[int, ...]
    text: str
    """Their text; joined over a reply it is the reply's text exactly."""
    drafted: int = 0
    """Draft tokens that this step tested."""
    accepted: int = 0
    """Draft tokens among `ids`."""
    ends: tuple[int, ...] = ()
    """For each id, characters of `text` up to its end; empty where unknown: then the ids share the
    text evenly."""
    facts: Mapping[str, float] = field(default_factory=dict[str, float], repr=False, hash=False)
    """Further figures of this step for the trace, by name."""


@dataclass(frozen=True, slots=True)
class Begun:
    """The beginning of a reply to what the user has not said yet."""

    bursts: tuple[TokenBurst, ...]
    whole: bool
    """Nothing comes after them."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may call."""

    name: str
    description: str
    parameters: Mapping[str, object]
    """JSON schema of its arguments."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function the model asks for; it never reaches synthesis, and is run only after commit."""

    turn: int
    call_id: str
    name: str
    arguments: Mapping[str, object]
    ids: tuple[int, ...] = ()
    """The tokens that spelled the call."""
    problem: str = ""
    """Why it cannot be read; then there are no arguments, and nobody is to run it."""
    client: bool = False
    """Whoever is shown the call is to run it and to bring the result; else it is a tool of ours."""


@dataclass(frozen=True, slots=True)
class Past:
    """What the user said, and what was replied."""

    said: str
    replied: tuple[str | tuple[ToolCall, str], ...]
    """Words, and calls with what they returned, as they came."""


@dataclass(frozen=True, slots=True)
class Span:
    """A spoken word and the reply tokens that it came from."""

    start: int
    """First character in `Clause.spoken`."""
    end: int
    """Character after the last in `Clause.spoken`."""
    tokens: int
    """Reply tokens that have been heard once this word has been heard."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A piece of the reply that is synthesised in one go."""

    turn: int
    index: int
    text: str
    """As written."""
    spoken: str
    """As normalised for speech."""
    spans: tuple[Span, ...] = ()
    """One for each spoken word, in order."""
    last: bool = False
    """True for the reply's last clause."""


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """When a word of a clause sounds."""

    start: int
    """Sample index in the clause at which the word begins."""
    end: int
    """Sample index in the clause at which the word has been said."""
    span: int
    """Index into `Clause.spans`."""


@dataclass(frozen=True, slots=True)
class SpeechChunk:
    """Audio of a clause, or of a part of one."""

    turn: int
    clause: Clause
    pcm: Pcm
    rate: int
    """Hertz."""
    start: int
    """Index of the first sample in the clause's audio."""
    words: tuple[SpokenWord, ...] = ()
    """Words that end within this chunk."""
    last: bool = False
    """True for the clause's last chunk."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A line for the user: a warning, a fallback, why a turn failed."""

    text: str


@dataclass(frozen=True, slots=True)
class Calibration:
    """What a language model's P(end of turn) means; every model has its own scale."""

    complete_above: float
    """From this probability on the user has evidently finished."""
    incomplete_below: float
    """Under this one they have evidently not; in between nobody knows."""
    complete_ms: int
    """Least silence that ends a turn which is evidently complete, in milliseconds: the less
    certain the model's judgement, the longer."""
    shift: float = 0.0
    """By how much the log-odds are higher once there has been an exchange: the probability of a
    later turn is compared after this is taken off."""


@dataclass(frozen=True, slots=True)
class TurnHeard:
    """A turn of the user begins, or is over; what was said in it comes as a `Transcript`."""

    turn: int
    sample: int
    """Where it begins or ends in the stream, at 16 kHz."""
    over: bool


@dataclass(frozen=True, slots=True)
class FloorChange:
    """A sound of the user's paused a reply, or it is decided what that was."""

    turn: int
    """Of the sound."""
    rival: int
    """The turn whose reply was there to be heard."""
    change: Literal["paused", "resumed", "interrupted"]


@dataclass(frozen=True, slots=True)
class StageSpan:
    """A stretch of one stage's work in a turn."""

    lane: str
    """The stage, one of `trace.Lane`."""
    name: str
    """What it did: `partial`, `round`, `clause 2`."""
    start: float
    """Seconds of the loop's clock."""
    end: float
    """Seconds of the loop's clock."""
    args: Mapping[str, float | str] = field(default_factory=dict[str, float | str])
    """Figures of this piece of work; `words` and `tokens` are drawn as counters."""


@dataclass(frozen=True, slots=True)
class TurnTrace:
    """The record of one turn; every report of latency is read from it."""

    turn: int
    marks: Mapping[str, float] = field(default_factory=dict[str, float])
    """Moment of each mark, in seconds of the loop's clock."""
    counters: Mapping[str, float] = field(default_factory=dict[str, float])
    heard: str = ""
    """The part of the reply that was played."""
    outcome: Outcome = "done"
    spans: tuple[StageSpan, ...] = ()
    """What each stage did and when, in the order recorded."""
    speech_end: int | None = None
    """The sample of the stream after the user's last voiced one, where a voice was heard."""
    seed: int | None = None
    """Of the noise that tokens were drawn with, if any; as `llm.seed` it repeats the reply."""


Event = Transcript | TokenBurst | ToolCall | Clause | Notice | TurnHeard | FloorChange | TurnTrace
"""What a session tells whoever watches it; a `Clause` is told as it begins to sound."""


def spaced(texts: Iterable[str]) -> str:
    """Texts that were told apart, one behind the other: with a blank between two of them where they
    have none of their own."""
    joined = ""
    for text in filter(None, texts):
        apart = not joined or joined[-1].isspace() or text[0].isspace()
        joined += text if apart else f" {text}"
    return joined
