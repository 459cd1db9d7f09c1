"""Speech and phonemes by espeak-ng, whose C library runs in this process.

The library keeps its voice and its callback in globals, so there is one instance with a lock. It
returns audio in pieces, but one step is enough: a clause of four seconds takes about ten
milliseconds on one slow core. So a clause is one step and one chunk. The library varies the pitch a
little, and does not begin anew with each clause. So a clause that is said twice in a process sounds
slightly different. This module sees only the words to say, not the text that was written.
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

from voiceloop.audio.frames import from_pcm16, silence
from voiceloop.audio.playback import AUDIBLE
from voiceloop.engines import Steps, Tts
from voiceloop.errors import ConfigError, EngineError
from voiceloop.settings.config import TtsConfig
from voiceloop.tts.delivery import pause, sayable, trim
from voiceloop.types import Clause, Pcm, Span, SpeechChunk, SpokenWord

_SYNCHRONOUS, _DO_NOT_EXIT, _UTF8, _IPA, _POSITION_IS_CHARACTER = 2, 0x8000, 1, 2, 1
_LIST_ENDS, _WORD = 0, 1
_RATE, _PITCH, _RANGE = 1, 3, 4
_OWN = 50
"""The value of `_PITCH` and `_RANGE` for which the library uses the pitch of the voice, and its
range of pitch."""
_SWITCH = re.compile(r"\([^()]*\)")
"""Pattern of the marks, such as (en), that the library puts around phonemes of another language."""


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


class EspeakNg:
    """The espeak-ng library. `espeak_ng` returns the only instance."""

    def __init__(self) -> None:
        """Load the library. Raises EngineError if that fails."""
        self._lock = threading.Lock()
        try:
            path = espeakng_loader.get_data_path()
            self._lib: Any = ctypes.CDLL(espeakng_loader.get_library_path())
        except (OSError, RuntimeError) as error:
            raise EngineError(
                f"espeak-ng cannot be loaded: {error}",
                "reinstall it with: pip install --force-reinstall espeakng-loader",
            ) from error
        self._lib.espeak_TextToPhonemes.restype = ctypes.c_char_p
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
        """Code of each voice's main language, by the voice's identifier."""
        self.voices = self._list_voices()
        self._variants = self._list_variants()

    def identifier(self, name: str) -> str:
        """Return the library's identifier of the voice called `name`, including a variant (`+f3`).

        Raises ConfigError for a voice that does not exist.
        """
        base, plus, variant = name.partition("+")
        voice = _choose(base, self.voices, "voice")
        return voice + plus + (_choose(variant, self._variants, "variant") if plus else "")

    def say(self, text: str, voice: str, pace: int) -> tuple[Pcm, list[tuple[int, int]]]:
        """Return the audio of `text`, and the indexes of each word's first character and first
        sample.

        `text` must have no control characters, because the library reads commands after them.
        `voice` is an identifier; `pace` is in words per minute.
        """
        lib, data = self._lib, text.encode()
        size = ctypes.c_size_t(len(data) + 1)
        with self._lock:
            self._pieces, self._words = [np.zeros(0, np.int16)], []
            # All is set each time: that takes a fifth of a millisecond, and voices cannot mix.
            lib.espeak_SetSynthCallback(self._callback)
            _check(
                lib.espeak_SetVoiceByName(voice.encode())
                or lib.espeak_SetParameter(_RATE, pace, 0)
                or lib.espeak_SetParameter(_PITCH, _OWN, 0)
                or lib.espeak_SetParameter(_RANGE, _OWN, 0)
                or lib.espeak_Synth(data, size, 0, _POSITION_IS_CHARACTER, 0, _UTF8, None, None)
            )
            return from_pcm16(np.concatenate(self._pieces)), self._words

    def phonemes(self, text: str, voice: str) -> str:
        """Return the IPA phonemes of `text`, with spaces between words. `text` has no punctuation;
        `voice` is an identifier."""
        data = ctypes.create_string_buffer(text.encode())
        rest = ctypes.c_void_p(ctypes.addressof(data))
        said = list[str]()
        with self._lock:
            _check(self._lib.espeak_SetVoiceByName(voice.encode()))
            while rest.value:  # a call reads a part of the text and moves the pointer past it
                piece = self._lib.espeak_TextToPhonemes(ctypes.byref(rest), _UTF8, _IPA)
                said.append((piece or b"").decode())
        return _SWITCH.sub("", " ".join(said)).strip()

    def _take(self, wav: Any, count: int, events: Any) -> int:
        if count > 0:
            # A cast to an array would make a type for each length, and ctypes keeps those.
            self._pieces.append(np.frombuffer(ctypes.string_at(wav, 2 * count), np.int16))
        index = 0
        while events[index].type != _LIST_ENDS:
            if events[index].type == _WORD:
                self._words.append((events[index].text_position - 1, events[index].sample))
            index += 1
        return 0

    def _list_voices(self) -> dict[str, str]:
        """Map each name in lower case to a voice's identifier, and fill `languages`. If several
        voices have a name, their priorities in the library decide."""
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


def _check(failed: int) -> None:
    if failed:
        raise EngineError(f"espeak-ng failed with error {failed}", "please report this")


def _languages(address: int) -> list[tuple[int, str]]:
    """Read the pairs (priority, name) at a memory address. Each is a byte and a zero-terminated
    name; a zero byte ends the list."""
    languages = list[tuple[int, str]]()
    while priority := ctypes.string_at(address, 1)[0]:
        name = ctypes.string_at(address + 1)
        languages.append((priority, name.decode()))
        address += len(name) + 2
    return languages


_ONE = threading.Lock()
_loaded = cache(EspeakNg)


def espeak_ng() -> EspeakNg:
    """Return the library, which is loaded once. Raises EngineError if that fails."""
    with _ONE:
        return _loaded()


def _choose(name: str, known: Mapping[str, str], kind: str) -> str:
    if name.lower() in known:
        return known[name.lower()]
    near = difflib.get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean '{near[0]}'?" if near else "choose for example: en-us, en-gb or en-us+f3"
    raise ConfigError(f"espeak-ng has no {kind} called '{name}'", hint)


_MARKS = re.compile(r"([;:,.!?…—]+(?:\s+|$))")


def phonemes(text: str, voice: str) -> str:
    """Return the IPA phonemes of `text`, as the espeak-ng voice called `voice` (`en-us`) says it.

    Raises ConfigError for a voice that does not exist.
    """
    espeak = espeak_ng()
    identifier = espeak.identifier(voice)
    said = [
        part if i % 2 else espeak.phonemes(part, identifier) if part else ""
        for i, part in enumerate(_MARKS.split(text))
    ]
    return "".join(said).strip()


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
