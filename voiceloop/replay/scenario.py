"""Scenarios: who speaks when, what each stage gives and costs, and what is to come of it.

The fields are the keys of a scenario file, which docs/replay.md describes. This module reads no
file and runs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta

from voiceloop.asr.agreement import normalise
from voiceloop.config import Config, LlmConfig
from voiceloop.replay.scripted import NO_IDEA, bursts
from voiceloop.replay.user import After, Piece, TimedSound
from voiceloop.schema import Count, Fraction, Object, Positive, Texts
from voiceloop.types import Outcome, ToolCall

Seconds = Annotated[float, Meta(ge=0, le=86_400)]
WordSeconds = Annotated[float, Meta(ge=0.02, le=60)]
Text = str | Texts
Items = Sequence[str | ToolCall]
_PAUSE = re.compile(r"\((\d{1,5}(?:\.\d*)?)\)$")


SCRIPTED = Config(llm=LlmConfig(skills="none"))
"""The settings where none are given: what is said follows the script alone."""


class Stages(Object, frozen=True):
    """What each stage gives and costs; voice activity detection takes no time."""

    asr_partial_s: Seconds = 0.05
    """A partial decode."""
    asr_final_s: Seconds = 0.08
    """A final decode."""
    asr_window_s: Annotated[float, Meta(ge=1, le=3600)] = 30.0
    """Longest window that one decode takes."""
    sound_s: Seconds = 0.02
    """Judging by the sound whether a turn is over."""
    llm_prefill_s: Seconds = 0.03
    """Reading new words of the user."""
    llm_burst_s: Seconds = 0.03
    """One round of the language model."""
    llm_burst_words: Positive = 3
    """Words that one round gives."""
    tts_first_s: Seconds = 0.04
    """A clause's first audio."""
    tts_step_s: Seconds = 0.02
    """Each further chunk of its audio."""
    tts_chunk_words: Count = 0
    """Words in a chunk; 0: the whole clause is one."""
    tts_word_s: WordSeconds = 0.25
    """How long a word of the reply sounds."""


class UserSound(Object, frozen=True):
    """Something the user says, or a sound without words."""

    text: str = ""
    """Words, and silences between them in seconds: `Tell me (0.4) about the sky`."""
    noise_s: Seconds = 0.0
    """Instead of words a sound that has none, such as a cough, so long."""
    at: Seconds | None = None
    """Seconds of the stream."""
    after: After | None = None
    """Instead of `at`: what it follows."""
    delay_s: Seconds = 0.0
    """By how much it follows that."""
    turn: Positive | None = None
    """Whose sound or end it follows; none: the next."""
    word_s: WordSeconds = 0.3
    """How long a word sounds."""
    misheard: Mapping[str, str] = {}
    """What partial decodes take words for while the user speaks."""

    def say(self) -> TimedSound:
        """The sound as the microphone is given it."""
        what = self.text or f"a sound of {self.noise_s:g} s"
        pieces = tuple(map(self._piece, self.text.split())) or (Piece("", self.noise_s),)
        return TimedSound(pieces, what, self.at, self.after or "speech", self.delay_s, self.turn)

    def words(self) -> list[str]:
        """The words of the text."""
        return [word for word in self.text.split() if not _PAUSE.match(word)]

    def _piece(self, word: str) -> Piece:
        if pause := _PAUSE.match(word):
            return Piece(None, float(pause[1]))
        heard = {normalise(right): wrong for right, wrong in self.misheard.items()}
        return Piece(word, self.word_s, heard.get(normalise(word)))


class ScriptedAnswer(Object, frozen=True):
    """What the language model says to a text of the user."""

    to: str | None = None
    """The user's words; none: whatever else they say."""
    says: Text = ""
    """In bursts as listed; a text is cut into bursts of `llm_burst_words`."""
    calls: str = ""
    """The tool that it calls then."""
    arguments: Mapping[str, object] = {}
    """What the tool is given."""
    then: Text = ""
    """What is said once the tool has returned."""


class Failure(Object, frozen=True):
    """A stage that breaks."""

    stage: Literal["asr", "llm", "tts"]
    on: str = ""
    """In work on a text that holds this; empty: in any."""


class ExpectedTurn(Object, frozen=True):
    """What is expected of a turn; what is not given may be anything."""

    transcript: str | None = None
    """The user's words as they were understood."""
    reply: str | None = None
    """What was written in answer, heard or not."""
    heard: str | None = None
    """What of it was heard."""
    outcome: Outcome | None = None
    max_voice_to_voice_ms: Seconds | None = None
    max_endpoint_to_sound_ms: Seconds | None = None
    counters: Mapping[str, int | float] = {}
    """Counters of the turn; one that never counted is 0."""


class Expect(Object, frozen=True):
    """What is to come of a scenario; what is not given may be anything."""

    turn: tuple[ExpectedTurn, ...] = ()
    """All turns in order; none: any."""
    notices: Texts | None = None
    """All notices in order."""


class Scenario(Object, frozen=True):
    """A conversation that can be replayed.

    Its fields are the keys of its file.
    """

    about: str = ""
    """What it shows."""
    full_duplex: bool = False
    """The microphone is open while a reply sounds."""
    overlap: str = "speculative"
    """One of `turn.overlap.OVERLAPS`."""
    silence_s: Seconds = 0.5
    """Silence after the last sound of the user."""
    patience_s: Seconds = 30.0
    """How long a sound waits for what it follows while nothing happens."""
    limit_s: Seconds = 3600.0
    """A conversation that is longer has gone wrong."""
    stages: Stages = Stages()
    end_of_turn: Mapping[str, Fraction] = {}
    """How likely the language model finds that the user's turn ends after a text."""
    end_by_sound: Mapping[str, Fraction] = {}
    """How likely a turn ends by the sound of these words, of others one half; empty: nobody judges
    by the sound."""
    user: tuple[UserSound, ...] = ()
    reply: tuple[ScriptedAnswer, ...] = ()
    fail: tuple[Failure, ...] = ()
    expect: Expect = Expect()
    config: Config = SCRIPTED
    """The settings; in a file they stand in sections as in a configuration file."""

    def replies(self) -> tuple[dict[str, Items], Items, dict[str, Sequence[str]]]:
        """The replies by the user's text, the one to anything else, and what follows each call."""
        table: dict[str, Items] = {}
        default: Items = NO_IDEA
        results: dict[str, Sequence[str]] = {}
        for number, answer in enumerate(self.reply, start=1):
            items: list[str | ToolCall] = [*self._bursts(answer.says)]
            if answer.calls:
                call = ToolCall(0, f"call {number}", answer.calls, answer.arguments)
                results[call.call_id] = self._bursts(answer.then, after=answer.says)
                items.append(call)
            if answer.to is None:
                default = items
            else:
                table[answer.to] = items
        return table, default, results

    def _bursts(self, text: Text, after: Text = "") -> Sequence[str]:
        if not isinstance(text, str):
            return text
        return bursts(f" {text}" if after else text, self.stages.llm_burst_words)
