"""Defines the values that pass between stages. They are small and frozen, and do no work.

A value of a turn has the number of the turn. Consumers drop values of other turns. So a cancelled
turn has no effect even if some of its values are still queued. This module imports only numpy.

Positions in audio are counted in samples of its stream. Moments and durations of work are in
seconds of the event loop's clock.
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
"""How a turn ended. `done`: its reply came to its end. `silent`: the reply had nothing to speak.
`interrupted`: the reply was stopped. `failed`: a stage broke. `abandoned`: there was no answer."""


@dataclass(frozen=True, slots=True)
class AudioFrame:
    """A short piece of a stream of audio."""

    pcm: Pcm
    rate: int
    """Hertz."""
    start: int
    """Index of the first sample in the stream."""

    @property
    def end(self) -> int:
        """Return the index of the sample after the last."""
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
    """The words of the user in a turn, as far as they are known."""

    turn: int
    revision: int
    """Number that grows by one with every transcript of the turn."""
    committed: tuple[Word, ...]
    """Words that no later partial transcript changes."""
    tentative: tuple[Word, ...] = ()
    """Words that may still change."""
    final: bool = False
    """True once every sample before the endpoint has been decoded; then nothing is tentative."""

    @property
    def text(self) -> str:
        """Return all words, committed and tentative, as text."""
        return " ".join(word.text for word in self.committed + self.tentative)

    @property
    def committed_text(self) -> str:
        """Return the committed words as text."""
        return " ".join(word.text for word in self.committed)


FILTERED = "filtered"
"""Fact of a burst, and counter of a turn: a filter of the model's server has cut the reply off."""

LOADS = "loads"
"""Fact of a burst, and counter of a turn: the reply waits until the model has been loaded."""


@dataclass(frozen=True, slots=True)
class TokenBurst:
    """The tokens that one verify step of the target model accepted."""

    turn: int
    ids: tuple[int, ...]
    text: str
    """The text of the tokens. The texts of all bursts, joined, are exactly the reply's text."""
    drafted: int = 0
    """Draft tokens that this step tested."""
    accepted: int = 0
    """Draft tokens among `ids`."""
    ends: tuple[int, ...] = ()
    """For each id, the number of characters of `text` up to the end of its token. Empty if unknown;
    then each token counts as an equal part of the text."""
    facts: Mapping[str, float] = field(default_factory=dict[str, float], repr=False, hash=False)
    """Other measurements of this step for the trace, by name."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the model may call."""

    name: str
    description: str
    parameters: Mapping[str, object]
    """JSON schema of its arguments."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a function by the model. It is never spoken, and runs only after the commit."""

    turn: int
    call_id: str
    name: str
    arguments: Mapping[str, object]
    ids: tuple[int, ...] = ()
    """The tokens of the call."""
    problem: str = ""
    """The reason why the call cannot be read. Then it has no arguments and must not be run."""
    client: bool = False
    """True if the client runs the function and returns the result, False for voiceloop's tools."""
    confirm: bool = False
    """True if the user must agree before the function is run."""
    result: str = ""
    """The result, as JSON. Empty until the call has returned."""


@dataclass(frozen=True, slots=True)
class Past:
    """A past exchange: the user's words and the reply."""

    said: str
    replied: tuple[str | tuple[ToolCall, str], ...]
    """The parts of the reply in order: texts, and calls with their results."""


@dataclass(frozen=True, slots=True)
class Span:
    """A spoken word and the reply tokens that it came from."""

    start: int
    """First character in `Clause.spoken`."""
    end: int
    """Character after the last in `Clause.spoken`."""
    tokens: int
    """Number of the reply's tokens that have been heard once this word has been heard."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A piece of a reply that is synthesised at once."""

    turn: int
    index: int
    text: str
    """The text as the model wrote it."""
    spoken: str
    """The text as it is spoken: numbers and symbols as words."""
    spans: tuple[Span, ...] = ()
    """A span for each spoken word, in order."""
    last: bool = False
    """True for the reply's last clause."""


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """The time in the audio at which a word of a clause sounds."""

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
    """A line for the user, e.g. a warning, or the reason why a turn failed."""

    text: str


@dataclass(frozen=True, slots=True)
class Calibration:
    """The meaning of a language model's end probabilities, since every model has its own scale."""

    complete_above: float
    """Probability from which on the user has evidently finished."""
    incomplete_below: float
    """Probability below which the user has evidently not finished. In between, it is uncertain."""
    complete_ms: int
    """Shortest silence that ends an evidently complete turn, in ms. The less certain the model, the
    longer it is."""
    shift: float = 0.0
    """Amount by which the log-odds of an end are higher in later turns than in the first turn. It
    is subtracted from the log-odds of later turns. Then these are compared with the bounds
    above."""


@dataclass(frozen=True, slots=True)
class TurnHeard:
    """An event: a turn of the user begins, or is over. Its words come as a `Transcript`."""

    turn: int
    sample: int
    """Index in the stream at which it begins or ends, at 16 kHz."""
    over: bool


@dataclass(frozen=True, slots=True)
class FloorChange:
    """An event: a sound of the user paused a reply, or the contest is decided."""

    turn: int
    """The turn of the sound."""
    rival: int
    """The turn whose reply the sound paused."""
    change: Literal["paused", "resumed", "interrupted"]


@dataclass(frozen=True, slots=True)
class StageSpan:
    """A stretch of one stage's work in a turn."""

    lane: str
    """The stage, one of `trace.record.Lane`."""
    name: str
    """The kind of work, such as `partial`, `round` or `clause 2`."""
    start: float
    """Seconds of the loop's clock."""
    end: float
    """Seconds of the loop's clock."""
    args: Mapping[str, float | str] = field(default_factory=dict[str, float | str])
    """Figures of this piece of work; `words` and `tokens` are drawn as counters."""


@dataclass(frozen=True, slots=True)
class TurnTrace:
    """The record of one turn. All reports of latency come from such records."""

    turn: int
    marks: Mapping[str, float] = field(default_factory=dict[str, float])
    """The moment of each mark, in seconds of the loop's clock."""
    counters: Mapping[str, float] = field(default_factory=dict[str, float])
    """Sums over the turn by name, such as `tokens`."""
    heard: str = ""
    """The part of the reply that was played."""
    outcome: Outcome = "done"
    spans: tuple[StageSpan, ...] = ()
    """The work of each stage, in the order in which it was recorded."""
    speech_end: int | None = None
    """Index in the stream after the user's last voiced sample; None if no voice was heard."""
    seed: int | None = None
    """The seed of the sampling noise, if any; `llm.seed` with this value repeats the reply."""


Event = Transcript | TokenBurst | ToolCall | Clause | Notice | TurnHeard | FloorChange | TurnTrace
"""An event that a session shows. A `Clause` is shown when it begins to sound."""


def spaced(texts: Iterable[str]) -> str:
    """Join texts. A space is put between two texts if neither has whitespace where they meet."""
    joined = ""
    for text in filter(None, texts):
        apart = not joined or joined[-1].isspace() or text[0].isspace()
        joined += text if apart else f" {text}"
    return joined
