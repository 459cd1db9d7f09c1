"""Speech by espeak-ng, in this process, through the library that espeakng-loader carries.

The library hands out audio in pieces while it synthesises, but it is quicker than a step needs to
be (a clause of four seconds takes about ten milliseconds on one slow core), so a clause is one step
and one chunk. It is a singleton with one voice and one callback, hence the lock, and its pitch
flutter runs on from clause to clause, so the same clause varies a little within a process. This
module does not know what was written, only what is to be said.
"""

from __future__ import annotations

import ctypes
import difflib
import re
import threading
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import espeakng_loader  # pyright: ignore[reportMissingTypeStubs]
import numpy as np

from voiceloop.audio import from_pcm16, silence
from voiceloop.config import TtsConfig
from voiceloop.engines import Steps, Tts
from voiceloop.errors import ConfigError, EngineError
from voiceloop.playback import AUDIBLE
from voiceloop.tts.edges import PAUSE_MS, pause, trim
from voiceloop.types import Clause, Pcm, Span, SpeechChunk, SpokenWord

WORDS_PER_MINUTE = 175
"""The library's own pace."""

_SYNCHRONOUS, _DO_NOT_EXIT, _UTF8, _POSITION_IS_CHARACTER = 2, 0x8000, 1, 1
_LIST_ENDS, _WORD = 0, 1
_RATE, _PITCH, _RANGE = 1, 3, 4
_OWN = 50
"""The library's number for a voice's own pitch, and for its own range of pitch."""
# The library reads commands behind control characters; it cannot be given half a surrogate pair.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_LOCK = threading.RLock()
"""Held while the library is used: it keeps its state, voice and callback, in globals."""


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    )


class _Voice(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("languages", ctypes.c_void_p),
        ("identifier", ctypes.c_char_p),
        ("gender", ctypes.c_ubyte),
        ("age", ctypes.c_ubyte),
        ("variant", ctypes.c_ubyte),
        ("reserved", ctypes.c_ubyte),
        ("score", ctypes.c_int),
        ("spare", ctypes.c_void_p),
    )


_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event)
)


class _Library:
    """The shared library; its methods are called with `_LOCK` held."""

    def __init__(self) -> None:
        try:
            path = espeakng_loader.get_data_path()
            self._lib: Any = ctypes.CDLL(espeakng_loader.get_library_path())
        except (OSError, RuntimeError) as error:
            raise EngineError(
                f"espeak-ng cannot be loaded: {error}",
                "reinstall it with: pip install --force-reinstall espeakng-loader",
            ) from error
        self._lib.espeak_ListVoices.restype = ctypes.POINTER(ctypes.POINTER(_Voice))
        self.rate = int(
            self._lib.espeak_Initialize(_SYNCHRONOUS, 0, str(path).encode(), _DO_NOT_EXIT)
        )
        if self.rate <= 0:
            raise EngineError(
                f"espeak-ng cannot read its data in {path}",
                "reinstall espeakng-loader; the path must be shorter than 160 characters",
            )
        self._callback = _CALLBACK(self._take)  # kept here: the library holds a bare pointer
        self._pieces: list[np.ndarray[Any, np.dtype[np.int16]]] = []
        self._words: list[tuple[int, int]] = []
        self.languages = dict[str, str]()
        """Code of the language that a voice speaks before all others, by identifier."""
        self.voices = self._list_voices()
        self.variants = self._list_variants()

    def say(self, text: str, voice: str, pace: int) -> tuple[Pcm, list[tuple[int, int]]]:
        """The audio of `text`, and for each word its first character and first sample."""
        lib = self._lib
        self._pieces, self._words = [], []
        data = text.encode()
        size = ctypes.c_size_t(len(data) + 1)
        # Everything is set each time: that takes a fifth of a millisecond, and voices cannot mix.
        lib.espeak_SetSynthCallback(self._callback)
        failed = (
            lib.espeak_SetVoiceByName(voice.encode())
            or lib.espeak_SetParameter(_RATE, pace, 0)
            or lib.espeak_SetParameter(_PITCH, _OWN, 0)
            or lib.espeak_SetParameter(_RANGE, _OWN, 0)
            or lib.espeak_Synth(data, size, 0, _POSITION_IS_CHARACTER, 0, _UTF8, None, None)
        )
        if failed:
            raise EngineError(f"espeak-ng failed with error {failed}", "please report this")
        pieces = self._pieces or [np.zeros(0, np.int16)]
        return from_pcm16(np.concatenate(pieces)), self._words

    def _take(self, wav: Any, count: int, events: Any) -> int:
        if count > 0:
            # As an array it would be of a type of its own for each length, and ctypes keeps those.
            self._pieces.append(np.frombuffer(ctypes.string_at(wav, 2 * count), np.int16))
        index = 0
        while events[index].type != _LIST_ENDS:
            if events[index].type == _WORD:
                self._words.append((events[index].text_position - 1, events[index].sample))
            index += 1
        return 0

    def _list_voices(self) -> dict[str, str]:
        """Identifier by every name a voice goes by; where voices share one, the preferred voice."""
        ranked = dict[str, tuple[int, str]]()
        for voice in self._list(None):
            identifier = voice.identifier.decode()
            names = [(0, identifier), (0, identifier.rpartition("/")[2]), (0, voice.name.decode())]
            spoken = _languages(voice.languages)
            self.languages[identifier] = min(spoken)[1]
            for priority, name in [*names, *spoken]:
                entry = (priority, identifier)
                ranked[name.lower()] = min(ranked.get(name.lower(), entry), entry)
        return {name: identifier for name, (_, identifier) in ranked.items()}

    def _list_variants(self) -> dict[str, str]:
        language = ctypes.create_string_buffer(b"variant")
        wanted = _Voice(languages=ctypes.cast(language, ctypes.c_void_p))
        names = [voice.identifier.decode().removeprefix("!v/") for voice in self._list(wanted)]
        return {name.lower(): name for name in names}

    def _list(self, wanted: _Voice | None) -> list[_Voice]:
        found = self._lib.espeak_ListVoices(wanted and ctypes.byref(wanted))
        voices = list[_Voice]()
        while found[len(voices)]:
            voices.append(found[len(voices)].contents)
        return voices


def _languages(address: int) -> list[tuple[int, str]]:
    """A list in the library's form: a priority, a name, zero; again; zero."""
    languages = list[tuple[int, str]]()
    while priority := ctypes.string_at(address, 1)[0]:
        name = ctypes.string_at(address + 1)
        languages.append((priority, name.decode()))
        address += len(name) + 2
    return languages


@cache
def _library() -> _Library:
    return _Library()


class Espeak:
    """Implements `engines.Tts`: a clause is one step and one chunk."""

    name = "espeak"

    def __init__(self, voice: str, speed: float) -> None:
        """`voice` is a language (`en-us`), a voice's name, or either with a variant (`en-us+f3`).

        Raises ConfigError for a voice that there is not, EngineError without a working library.
        """
        with _LOCK:
            self._library = _library()
        self.rate = self._library.rate
        self.voice = voice
        self.check_voice(voice)
        self._speed = speed

    def voices(self) -> Sequence[str]:
        """Each voice by its code, such as `en-us`; variants and other names are left out."""
        identifiers = set(self._library.voices.values())
        return sorted(identifier.rpartition("/")[2].lower() for identifier in identifiers)

    def check_voice(self, name: str) -> None:
        """See `engines.Tts`."""
        self._identifier(name)

    def language(self, voice: str | None = None) -> str:
        """See `engines.Tts`."""
        identifier = self._identifier(self.voice if voice is None else voice)
        return self._library.languages[identifier.partition("+")[0]]

    def _identifier(self, name: str) -> str:
        base, plus, variant = name.partition("+")
        voice = _choose(base, self._library.voices, "voice")
        return voice + plus + (_choose(variant, self._library.variants, "variant") if plus else "")

    def synthesize(self, clause: Clause, voice: str | None = None) -> Steps[SpeechChunk]:
        """Speak a clause; one without anything to say gives no audio."""
        pcm, starts = silence(0), list[tuple[int, int]]()
        text = _UNSAFE.sub(" ", clause.spoken)
        if any(char.isalnum() for char in text):
            if not clause.last and text.rstrip()[-1] not in PAUSE_MS:
                text += ","  # or it would sound like the end of the sentence
            with _LOCK:
                pcm, starts = self._library.say(
                    text,
                    self._identifier(self.voice if voice is None else voice),
                    round(WORDS_PER_MINUTE * self._speed),
                )
        pcm, cut = trim(pcm, self.rate)
        words = _word_times(clause.spans, [(at, sample - cut) for at, sample in starts], pcm)
        if len(pcm):
            pcm = np.concatenate((pcm, pause(clause, self.rate, self._speed)))
        yield SpeechChunk(clause.turn, clause, pcm, self.rate, 0, words, last=True)


def _choose(name: str, known: Mapping[str, str], kind: str) -> str:
    if name.lower() in known:
        return known[name.lower()]
    near = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else "choose for example: en-us, en-gb or en-us+f3"
    raise ConfigError(f"espeak-ng has no {kind} called '{name}'", hint)


def _word_times(
    spans: Sequence[Span], starts: Sequence[tuple[int, int]], pcm: Pcm
) -> tuple[SpokenWord, ...]:
    """When each span sounds in `pcm`, from the first sample of each word that the library names.

    The library names several words for one span (a hyphen) or one for several (a set phrase).
    Spans that share a word share its time by their length. A word ends with its last audible
    sample, not with the pause behind it.
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
    """Entry point of `voiceloop.tts`."""
    return Espeak(config.voice, config.speed)
