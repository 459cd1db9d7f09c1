"""Scenarios: who speaks when, what each stage gives and costs, and what result is expected.

The fields are the keys of a scenario file in TOML, and sections such as `[turns]` hold settings.
`tests/data/scenarios` has examples. This module runs nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, convert
from msgspec.structs import replace

from tests.support.expected import Expect
from tests.support.scripted import NO_IDEA, bursts
from tests.support.user import After, Piece, TimedSound
from voiceloop.asr.transcript import normalise
from voiceloop.settings.config import SECTIONS, Config, LlmConfig, assembled, flatten, given_in
from voiceloop.settings.schema import Count, Fraction, Object, Positive, Texts
from voiceloop.types import ToolCall

Seconds = Annotated[float, Meta(ge=0, le=86_400)]
WordSeconds = Annotated[float, Meta(ge=0.02, le=60)]
Text = str | Texts
Items = Sequence[str | ToolCall]
_PAUSE = re.compile(r"\((\d{1,5}(?:\.\d*)?)\)$")


SCRIPTED = Config(llm=LlmConfig(skills="none"))
"""Default settings of a scenario. No skill answers, so replies follow the script alone."""


class Stages(Object, frozen=True):
    """The times that the stages take, and the sizes of their results. Voice activity detection
    takes no time."""

    asr_partial_s: Seconds = 0.05
    """Seconds that a partial decode takes."""
    asr_final_s: Seconds = 0.08
    """Seconds that a final decode takes."""
    asr_window_s: Annotated[float, Meta(ge=1, le=3600)] = 30.0
    """Maximum seconds of audio in one decode."""
    sound_s: Seconds = 0.02
    """Seconds that a judgement of the turn model takes."""
    llm_prefill_s: Seconds = 0.03
    """Seconds that reading new words of the user takes."""
    llm_burst_s: Seconds = 0.03
    """Seconds that one round of the language model takes."""
    llm_burst_words: Positive = 3
    """Number of words that one round gives."""
    tts_first_s: Seconds = 0.04
    """Seconds until a clause's first audio."""
    tts_step_s: Seconds = 0.02
    """Seconds for each further chunk of a clause's audio."""
    tts_chunk_words: Count = 0
    """Number of words in a chunk; 0: the whole clause is one chunk."""
    tts_word_s: WordSeconds = 0.25
    """Seconds of audio for each word of the reply."""


class UserSound(Object, frozen=True):
    """Words of the user, or a sound without words. It never begins before the end of the sound that
    is in front of it in the file."""

    text: str = ""
    """Words, and between them silences in seconds: `Tell me (0.4) about the sky`."""
    noise_s: Seconds = 0.0
    """Seconds of a sound without words, such as a cough, instead of `text`."""
    at: Seconds | None = None
    """When the sound begins, in seconds of the stream; None: `after` decides."""
    after: After | None = None
    """Event that the sound follows, instead of `at`. `speech`: the end of the sound before it;
    `sound`: the first sound of a reply; `reply`: the end of a turn, or of all turns."""
    delay_s: Seconds = 0.0
    """Seconds from the event of `after` to the sound."""
    turn: Positive | None = None
    """Number of the turn whose first sound or end is the event of `after`. None: the first sound of
    any turn, or the end of all turns, after the user's last sound."""
    word_s: WordSeconds = 0.3
    """Seconds that each word lasts."""
    misheard: Mapping[str, str] = {}
    """Maps words of the text to those that partial decodes give instead while the user speaks. If
    the other word is empty, partial decodes leave the word out."""

    def say(self) -> TimedSound:
        """Return the sound in the form that the scripted microphone takes."""
        what = self.text or f"a sound of {self.noise_s:g} s"
        pieces = tuple(map(self._piece, self.text.split())) or (Piece("", self.noise_s),)
        return TimedSound(pieces, what, self.at, self.after or "speech", self.delay_s, self.turn)

    def _piece(self, word: str) -> Piece:
        if pause := _PAUSE.match(word):
            return Piece(None, float(pause[1]))
        heard = {normalise(right): wrong for right, wrong in self.misheard.items()}
        return Piece(word, self.word_s, heard.get(normalise(word)))


class ScriptedReply(Object, frozen=True):
    """The language model's answer to a text of the user."""

    to: str | None = None
    """The user's words; None: all words that have no answer of their own."""
    says: Text = ""
    """The reply: a list of bursts, or a text that is cut into bursts of `llm_burst_words` words."""
    calls: str = ""
    """Name of the tool that is called after `says`; empty for none."""
    arguments: Mapping[str, object] = {}
    """Arguments of the call."""
    then: Text = ""
    """The rest of the reply, once the tool has returned."""


class Failure(Object, frozen=True):
    """A stage that fails."""

    stage: Literal["asr", "llm", "tts"]
    on: str = ""
    """The stage fails on texts that contain this; empty: on all texts."""


class Scenario(Object, frozen=True):
    """A conversation that can be played.

    Its fields are the keys of its file.
    """

    about: str = ""
    """What the scenario shows."""
    full_duplex: bool = False
    """Whether the microphone is open while a reply sounds."""
    overlap: str = "speculative"
    """Which stages work at the same time and ahead of time: a name in `turn.resources.OVERLAPS`."""
    silence_s: Seconds = 0.5
    """Seconds of silence between the user's last sound and the end of the microphone's stream."""
    patience_s: Seconds = 30.0
    """The scenario fails if a sound waits for the event that it follows, and nothing happens for
    this many seconds."""
    limit_s: Seconds = 3600.0
    """Maximum length of the conversation in seconds. A longer one has failed."""
    stages: Stages = Stages()
    end_of_turn: Mapping[str, Fraction] = {}
    """The language model's end probability after each text of the user; unknown after other
    texts."""
    end_by_sound: Mapping[str, Fraction] = {}
    """The turn model's end probability for each text of the user, and 0.5 for other texts; empty:
    there is no turn model."""
    user: tuple[UserSound, ...] = ()
    reply: tuple[ScriptedReply, ...] = ()
    fail: tuple[Failure, ...] = ()
    expect: Expect = Expect()
    config: Config = SCRIPTED
    """Settings. A scenario file has them in sections, like a configuration file."""

    def replies(self) -> tuple[dict[str, Items], Items, dict[str, Sequence[str]]]:
        """Return the replies by the user's text, the default reply, and the bursts after each call
        of a tool by the call's id."""
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


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file. Raises msgspec.ValidationError or ConfigError for a mistake in it."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    given = {name: table.pop(name) for name in [*table] if name in SECTIONS}
    config = assembled(flatten(SCRIPTED) | given_in(given, path))
    return replace(convert(table, Scenario), config=config)
