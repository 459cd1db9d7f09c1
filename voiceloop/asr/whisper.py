"""Whisper, run through faster-whisper and CTranslate2.

Whisper was trained on windows of 30 seconds, and encoding one takes most of a decode's time. On a
CPU voiceloop's own encoder gives the states of a full window for little more work than its speech
takes (`short_window`). If the words of a final decode are unlikely or repeat themselves, the decode
is repeated from states that are encoded in full. If the words leave sound out, the window is
decoded once more in two parts (`unheard`).

A decode is one bounded call. On a GPU CTranslate2 works on a thread and a CUDA stream of its own,
of normal priority. That stream waits only for the device's default stream, on which voiceloop runs
nothing (`placement.own_stream`). This module knows nothing of audio streams and turns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import ctranslate2
import numpy as np
from faster_whisper import WhisperModel

from voiceloop.asr.encoding import Encoding, read_windows
from voiceloop.asr.whisper_decoder import HUM_S, Hypothesis, WhisperDecoder
from voiceloop.asr.whisper_model import load, model_folder, unknown_language, whisper_device
from voiceloop.asr.window import LONG_S, WindowSound, fuller, gone
from voiceloop.asr.windowed import WindowedAsr
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.engines import Abandoned, Asr, AsrRequest
from voiceloop.errors import ConfigError
from voiceloop.languages import AUTO
from voiceloop.placement import MemoryPart
from voiceloop.settings.config import AsrConfig
from voiceloop.types import Pcm, Word

QUIETEST = 1e-4
"""Peak amplitude below which a window holds nothing to hear."""
LOOKS = 2
"""Maximum depth of division. A window with missing words is divided in two, and each part may be
divided again. So two missing sentences of three can be found."""
CAREFUL_BEAMS = 5
"""Beams of the last attempt to find missing words, if no division found them, and of the final
decode of a number that is said in groups."""
SURE = 0.6
"""Minimum mean probability of the words in a part of a divided window. Less likely words may be
noise."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """The words of a window."""

    found: Hypothesis | None
    """Decode that gave the words; None if they come from several decodes."""
    words: Sequence[Word]
    moments: Sequence[float]
    """Times at which each of the words' tokens begins and the last one ends, in seconds. Empty if
    the words have no exact times."""

    @property
    def texts(self) -> list[str]:
        """The words as strings."""
        return [word.text for word in self.words]


class Whisper(WindowedAsr):
    """A Whisper model as a recogniser."""

    def __init__(self, config: AsrConfig, model: WhisperModel, encoding: Encoding) -> None:
        self.name = f"whisper {config.model}"
        self.max_window_s = encoding.windows.longest_s
        self.languages = _languages(model)
        self._beams = config.beam_size
        self._model = model
        self._encode = encoding
        # A model of one language has no other to detect.
        alone = config.language == AUTO and not model.model.is_multilingual
        self._language = self.languages[0] if alone else config.language
        self._decoders = dict[str, WhisperDecoder]()
        self.counters = {"short_windows": 0, "full_windows_after": 0, "looked_again": 0}
        """Counters. `short_windows`: final decodes of a short window. `full_windows_after`: final
        decodes of a short window that were repeated with the full window. `looked_again`: windows
        that were decoded again to find missing words."""

    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        """Decode a window. Raises ValueError if it is longer than `max_window_s`.

        A final decode uses the configured beams; a partial decode is greedy. With `request.timed`,
        the cross-attention gives the time and the probability of each word. Otherwise the words
        share the window evenly, and all get the mean probability of the tokens. That probability is
        0 if the decode looped, reached its limit of tokens, may have left something out, or may
        hold a number that is said in groups.
        """
        pcm, timed = request.pcm, request.timed
        seconds = len(pcm) / SPEECH_RATE
        if seconds > self.max_window_s:
            raise ValueError(f"a window of {seconds:.1f} s is longer than {self.max_window_s} s")
        if not _audible(pcm):
            return ()
        states = self._encode(pcm)
        _check(request)
        language = request.language or self._language
        decoder = self._decoder(self._detected(states)[0] if language == AUTO else language)
        sound = WindowSound(pcm)
        if not request.final:
            return _read(decoder, decoder.decode(states, seconds, 1), sound, timed=timed).words
        first = _read(decoder, self._finally(decoder, states, pcm, request), sound, timed=timed)
        _check(request)
        return self._complete(decoder, sound, first, request.settled, LOOKS).words

    def _decoder(self, language: str) -> WhisperDecoder:
        if language not in self._decoders:
            self._decoders[language] = WhisperDecoder(self._model, language)
        return self._decoders[language]

    def _finally(
        self,
        decoder: WhisperDecoder,
        states: ctranslate2.StorageView,
        pcm: Pcm,
        request: AsrRequest,
    ) -> Hypothesis:
        """Decode a window with the configured beams. If a short window was encoded and its words
        are not trusted, encode the full window and decode again. Digits are decoded with care.
        Raises Abandoned if the words of `request` are not wanted any more."""
        seconds = len(pcm) / SPEECH_RATE
        found = decoder.decode(states, seconds, self._beams)
        if self._encode.shortens(pcm):
            self.counters["short_windows"] += 1
            if not found.trusted:
                _check(request)
                self.counters["full_windows_after"] += 1
                found = decoder.decode(self._encode(pcm, whole=True), seconds, self._beams)
        if found.dictates and self._beams < CAREFUL_BEAMS:
            found = decoder.decode(found.states, seconds, CAREFUL_BEAMS)
        return found

    def _complete(
        self,
        decoder: WhisperDecoder,
        sound: WindowSound,
        first: _Reading,
        settled: Sequence[str],
        looks: int,
    ) -> _Reading:
        """Decode a window again if its `first` reading leaves much sound without words or lacks
        `settled` words. Returns the fullest reading. `looks` is how many levels of division are
        left (see `LOOKS`)."""
        whole, lost = first.found, gone(settled, first.texts)
        assert whole is not None, "it was decoded in one piece"
        if not looks or not (lost or first.moments or sound.spare(len(whole.tokens))):
            return first
        if first.words and not first.moments:
            first = _read(decoder, whole, sound, timed=True)
        silent, span = sound.without_words(first.moments)
        if not lost and (not first.words or silent < LONG_S):
            return first
        self.counters["looked_again"] += 1
        places = sound.places(span)
        if looks < LOOKS:
            places = places[:1]
        found = [self._divided(decoder, sound.pcm, at, first.texts, looks - 1) for at in places]
        better = [one for one in found if fuller(settled, first.texts, one.texts)]
        if looks == LOOKS and not better:
            again = decoder.decode(whole.states, len(sound.pcm) / SPEECH_RATE, CAREFUL_BEAMS)
            careful = _read(decoder, again, sound, timed=True)
            better = [careful] if fuller(settled, first.texts, careful.texts) else []
        return max(better, key=lambda one: len(one.words), default=first)

    def _divided(
        self, decoder: WhisperDecoder, pcm: Pcm, at: int, known: Sequence[str], looks: int
    ) -> _Reading:
        """Decode the parts of a window before and after sample `at`, one by one, and return the
        words of both. A part that may be noise is left out, unless all of its words are among the
        `known` ones."""
        words: list[Word] = []
        moments: list[float] = []
        for part, begin in ((pcm[:at], 0.0), (pcm[at:], at / SPEECH_RATE)):
            if not _audible(part):
                continue
            states, sound = self._encode(part), WindowSound(part)
            found = self._finally(decoder, states, part, AsrRequest(part))
            first = _read(decoder, found, sound, timed=True)
            one = self._complete(decoder, sound, first, (), looks)
            sure = found.trusted and _likely(one.words)
            if not sure and not set(one.texts) <= set(known):
                continue
            words += [
                replace(word, start=word.start + begin, end=word.end + begin) for word in one.words
            ]
            moments += [moment + begin for moment in one.moments]
        return _Reading(None, words, moments)

    def detect_language(self, pcm: Pcm) -> tuple[str, float]:
        """Return the language that is spoken in the first window of `pcm`, and its probability.

        Raises ConfigError if the model's folder does not say which of its tokens are languages.
        """
        if not self._model.model.is_multilingual:
            return self.languages[0], 1.0
        return self._detected(self._encode(pcm[: int(self.max_window_s * SPEECH_RATE)]))

    def _detected(self, states: ctranslate2.StorageView) -> tuple[str, float]:
        """Return the most probable language of a window, and its probability."""
        (found,) = self._model.model.detect_language(states)
        for token, probability in found:  # the most probable one first
            if (code := token[2:-2]) in self.languages:
                return code, probability
        raise ConfigError(
            f"{self.name} cannot detect languages", "name the one that is spoken: asr.language"
        )


def _read(
    decoder: WhisperDecoder, found: Hypothesis, sound: WindowSound, *, timed: bool
) -> _Reading:
    """Return the words of the decode `found`, without loops. There are none if the window probably
    holds no speech, or a hum. With `timed`, the words get exact times."""
    words = found.spoken
    if not words or (len(sound.pcm) < HUM_S * SPEECH_RATE and decoder.hums(found, len(sound.pcm))):
        return _Reading(found, (), ())
    if timed:
        return _Reading(found, *decoder.timed(found, words, len(sound.pcm)))
    step = len(sound.pcm) / SPEECH_RATE / len(words)
    looped = not found.ended or len(words) < len(found.words)
    sure = not (looped or found.dictates or sound.spare(len(found.tokens)))
    probability = math.exp(found.mean) if sure else 0.0
    spread = enumerate(words)
    return _Reading(
        found, [Word(w.text, i * step, (i + 1) * step, probability) for i, w in spread], ()
    )


def _check(request: AsrRequest) -> None:
    """Raise Abandoned unless the words of `request` are still wanted."""
    if not request.wanted():
        raise Abandoned


def _likely(words: Sequence[Word]) -> bool:
    return sum(word.probability for word in words) >= SURE * len(words)


def _audible(pcm: Pcm) -> bool:
    return float(np.abs(pcm).max(initial=0.0)) >= QUIETEST


def whisper(config: AsrConfig) -> Asr:
    """Load `config.model`. This is the entry point of `voiceloop.asr`.

    Raises ConfigError for a language that the model does not know, and the errors of
    `catalog.names.find` and `whisper_model.load`.
    """
    folder = model_folder(config)
    model = load(folder, config)
    known = _languages(model)
    if config.language not in known and (config.language != AUTO or not known):
        raise unknown_language(config)
    windows = read_windows(folder)
    encoder = short = None
    # A GPU encodes a full window in some milliseconds, and windows of any length hold no silence.
    if model.model.device == "cpu" and not windows.any_length:
        from voiceloop.asr.whisper_encoder import own_encoder  # imports torch

        encoder = own_encoder(folder, model)
    if encoder and config.pad_s is not None:
        from voiceloop.asr.short_window import ShortEncoder

        short = ShortEncoder(encoder)
    return Whisper(config, model, Encoding(model, windows, encoder, short, config.pad_s))


def footprint(config: AsrConfig, device: str) -> Iterator[MemoryPart]:
    """Yield the memory that the recogniser takes on `device`, estimated from the size of its file.

    On a CPU the encoder is kept once more, in 32 bits, and loading leaves buffers behind.
    """
    if whisper_device(config.device) != device:
        return
    path = model_folder(config) / "model.bin"
    stored = path.stat().st_size if path.is_file() else 0
    yield MemoryPart("Whisper", int(stored * (2.25 if device == "cpu" else 1)))


def _languages(model: WhisperModel) -> tuple[str, ...]:
    """Return the codes of the languages that a model knows."""
    known = model.supported_languages
    if not model.model.is_multilingual:
        return tuple(known)
    tokens = model.hf_tokenizer
    return tuple(one for one in known if tokens.token_to_id(f"<|{one}|>") is not None)
