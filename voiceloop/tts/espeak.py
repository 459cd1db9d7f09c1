"""Speech by the synthesizer of espeak-ng.

The library returns audio in pieces, but one step is enough: a clause of four seconds takes about
ten milliseconds on one slow core. So a clause is one step and one chunk. The library varies the
pitch a little, and does not begin anew with each clause. So a clause that is said twice in a
process sounds slightly different. This module sees only the words to say, not the text that was
written.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from voiceloop.audio.frames import silence
from voiceloop.audio.playback import AUDIBLE
from voiceloop.config import TtsConfig
from voiceloop.engines import Steps, Tts
from voiceloop.tts.delivery import pause, sayable, trim
from voiceloop.tts.espeak_ng import espeak_ng
from voiceloop.types import Clause, Pcm, Span, SpeechChunk, SpokenWord

WORDS_PER_MINUTE = 175
"""The library's default pace, in words per minute."""
VOICE = "en-us"
"""The voice that speaks if none is configured."""


class Espeak:
    """espeak-ng as an `engines.Tts`. A clause is one step and one chunk."""

    name = "espeak"
    paces = True

    def __init__(self, voice: str, speed: float) -> None:
        """Load the library. `voice` is a language (`en-us`) or the name of a voice, with or without
        a variant (`en-us+f3`).

        Raises ConfigError for an unknown voice, and EngineError without a working library.
        """
        self._library = espeak_ng()
        self.rate = self._library.rate
        self.voice = voice
        self.check_voice(voice)
        self._speed = speed

    def voices(self) -> Sequence[str]:
        """Return the code of each voice, such as `en-us`. Variants and other names are left out."""
        identifiers = set(self._library.voices.values())
        return sorted(identifier.rpartition("/")[2].lower() for identifier in identifiers)

    def check_voice(self, name: str) -> None:
        """Raise ConfigError for a voice that the library does not have."""
        self._library.identifier(name)

    def language(self, voice: str | None = None) -> str:
        """Return the code of the voice's main language."""
        identifier = self._library.identifier(self.voice if voice is None else voice)
        return self._library.languages[identifier.partition("+")[0]]

    def synthesize(
        self, clause: Clause, voice: str | None = None, speed: float = 1.0
    ) -> Steps[SpeechChunk]:
        """Speak a clause in one chunk, which has no audio if there is nothing to say."""
        pcm, starts = silence(0), list[tuple[int, int]]()
        if text := sayable(clause):
            pcm, starts = self._library.say(
                text,
                self._library.identifier(self.voice if voice is None else voice),
                round(WORDS_PER_MINUTE * self._speed * speed),
            )
        pcm, cut = trim(pcm, self.rate)
        words = _word_times(clause.spans, [(at, sample - cut) for at, sample in starts], pcm)
        if len(pcm):
            pcm = np.concatenate((pcm, pause(clause, self.rate, self._speed * speed)))
        yield SpeechChunk(clause.turn, clause, pcm, self.rate, 0, words, last=True)


def _word_times(
    spans: Sequence[Span], starts: Sequence[tuple[int, int]], pcm: Pcm
) -> tuple[SpokenWord, ...]:
    """Return when each span sounds in `pcm`.

    `starts` holds the indexes of the first character and the first sample of each word that the
    library reports. The library may report several words for one span (with a hyphen), or one word
    for several spans (a set phrase). Spans in one word share the time of the word in proportion to
    their length. A span ends with its last audible sample, before the pause that follows it.
    """
    if not spans:
        return ()
    named: dict[int, int] = {0: 0}
    firsts = [span.start for span in spans]
    for at, sample in starts:
        span = bisect_right(firsts, at) - 1
        if span > max(named):
            named[span] = min(max(sample, max(named.values())), len(pcm))
    named[len(spans)] = len(pcm)
    edges = np.interp(
        [*firsts, spans[-1].end],
        [spans[i].start if i < len(spans) else spans[-1].end for i in named],
        list(named.values()),
    )
    begin = [round(edge) for edge in edges]
    loud = np.flatnonzero(np.abs(pcm) >= AUDIBLE)
    words = list[SpokenWord]()
    for i in range(len(spans)):
        heard = loud[: np.searchsorted(loud, begin[i + 1])]
        end = int(heard[-1]) + 1 if len(heard) else begin[i]
        words.append(SpokenWord(begin[i], max(begin[i], end), i))
    return tuple(words)


def espeak(config: TtsConfig) -> Tts:
    """Load espeak-ng, an entry point of `voiceloop.tts`. Raises ConfigError and EngineError."""
    return Espeak(config.voice or VOICE, config.speed)
