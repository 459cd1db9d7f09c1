"""Speech synthesizers behind one function: `render(text, voice) -> Speech`.

The three engines make different errors: espeak-ng (formants and klatt, many accents and variants),
flite (diphones and clustergen voices made from human recordings) and festival (diphones, HMM).
Every rendering has the time at which each written word ends, so audio that is cut off still has an
exact transcript. This module knows nothing of augmentation or of models.
"""

from __future__ import annotations

import ctypes as C
import random
import subprocess
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import espeakng_loader
import numpy as np
import soundfile as sf

ACCENTS = ("en-us", "en", "en-gb-scotland", "en-gb-x-rp", "en-gb-x-gbclan", "en-029")
VARIANTS = tuple(
    "f1 f2 f4 f5 m1 m2 m3 m4 m5 m7 m8 klatt klatt2 klatt3 klatt5 klatt6 adam Alex Alicia Andrea "
    "Annie anika antonio aunty belinda benjamin boris caleb david Denis Diogo ed edward2 Gene "
    "grandma grandpa gustave Henrique Hugo ian iven iven2 iven4 Jacky john kaukovalta Lee marcelo "
    "Marco max michel miguel Mike mike2 Nguyen norbert pablo paul pedro quincy Reed robert "
    "robosoft robosoft3 robosoft6 sandro shelby steph steph3 Storm Tweaky victor whisperf "
    "zac".split()
)
HELD_OUT_ACCENTS = ("en-us-nyc", "en-gb-x-gbcwmd")
"""Accents of espeak-ng that no training example uses."""
HELD_OUT_VARIANTS = tuple(
    "f3 m6 klatt4 linda Andy edward steph2 Michael travis rob Mario iven3 announcer".split()
)
"""Variants of espeak-ng that no training example uses."""
FLITE = ("kal", "kal16", "rms", "slt")
FESTIVAL = ("kal_diphone", "cmu_us_slt_arctic_hts")
TEST_VOICES = (("flite", "awb"), ("festival", "ked_diphone"))
"""Human-derived voices kept for testing: no training example uses them."""


@dataclass(frozen=True, slots=True)
class Voice:
    """A synthesizer's voice with factors for its prosody; 1.0 is the voice's own.

    `rate` multiplies the tempo, `pitch` the fundamental, `spread` the range of the intonation.
    """

    engine: str
    name: str
    rate: float = 1.0
    pitch: float = 1.0
    spread: float = 1.0


@dataclass(frozen=True, slots=True)
class Speech:
    """Synthesised speech: `pcm` is float32 mono in [-1, 1], at `rate` Hz.

    `ends[i]` is the second at which word `i` of `text.split()` ends. `ends` is None if the words of
    the engine do not match those of the text.
    """

    pcm: np.ndarray
    rate: int
    ends: tuple[float, ...] | None


def render(text: str, voice: Voice) -> Speech:
    """Speak `text`. Raises RuntimeError if the engine does not have the voice or says nothing."""
    return {"espeak": _espeak, "flite": _flite, "festival": _festival}[voice.engine](text, voice)


def training_voice(rng: random.Random, engine: str) -> Voice:
    """Draw a voice of `engine` ("espeak", "flite" or "festival") for training."""
    match engine:
        case "espeak":
            accent = rng.choice(ACCENTS[:2] if rng.random() < 0.5 else ACCENTS)
            name = accent if rng.random() < 0.06 else f"{accent}+{rng.choice(VARIANTS)}"
        case "flite":
            name = rng.choice(FLITE)
        case _:
            name = rng.choice(FESTIVAL)
    return _prosody(rng, Voice(engine, name))


def unseen_voice(rng: random.Random, kind: str) -> Voice:
    """Draw a voice that training never uses.

    The kind is "espeak" (held-out variants and accents) or "human" (`TEST_VOICES`, at their own
    rate and pitch).
    """
    if kind == "human":
        return Voice(*rng.choice(TEST_VOICES))
    if rng.random() < 0.5:
        name = f"{rng.choice(ACCENTS)}+{rng.choice(HELD_OUT_VARIANTS)}"
    else:
        name = f"{rng.choice(HELD_OUT_ACCENTS)}+{rng.choice(VARIANTS)}"
    return _prosody(rng, Voice("espeak", name))


def _prosody(rng: random.Random, voice: Voice) -> Voice:
    return replace(
        voice,
        rate=rng.uniform(0.75, 1.35),
        pitch=rng.uniform(0.75, 1.3),
        spread=rng.uniform(0.4, 1.8),
    )


# --- espeak-ng, in this process -------------------------------------------------------------


class _Event(C.Structure):
    _fields_ = [
        ("type", C.c_int),
        ("unique_identifier", C.c_uint),
        ("text_position", C.c_int),
        ("length", C.c_int),
        ("audio_position", C.c_int),
        ("sample", C.c_int),
        ("user_data", C.c_void_p),
        ("id", C.c_char * 8),
    ]


_CALLBACK = C.CFUNCTYPE(C.c_int, C.POINTER(C.c_short), C.c_int, C.POINTER(_Event))
_SYNCHRONOUS, _UTF8, _WORD, _LIST_TERMINATED = 2, 1, 1, 0
_RATE, _PITCH, _RANGE = 1, 3, 4


class _Espeak:
    """The library espeak-ng, a process-wide singleton with one voice and one callback."""

    def __init__(self) -> None:
        self.lib = C.CDLL(espeakng_loader.get_library_path())
        data = espeakng_loader.get_data_path()
        self.rate = self.lib.espeak_Initialize(_SYNCHRONOUS, 0, data.encode(), 0)
        self.pcm: list[np.ndarray] = []
        self.words: list[tuple[int, float]] = []  # (1-based character position, seconds)
        self.callback = _CALLBACK(self._heard)  # the library keeps only a pointer to it

    def _heard(self, wav, samples: int, events) -> int:
        if samples > 0:
            # A ctypes array would make a type for each length, and ctypes never frees those.
            self.pcm.append(np.frombuffer(C.string_at(wav, 2 * samples), np.int16))
        i = 0
        while events[i].type != _LIST_TERMINATED:
            if events[i].type == _WORD:
                self.words.append((events[i].text_position, events[i].audio_position / 1000))
            i += 1
        return 0


@cache
def _espeak_library() -> _Espeak:
    return _Espeak()


def _espeak(text: str, voice: Voice) -> Speech:
    engine = _espeak_library()
    if engine.lib.espeak_SetVoiceByName(voice.name.encode()):
        raise RuntimeError(f"espeak-ng has no voice {voice.name}")
    engine.lib.espeak_SetParameter(_RATE, round(170 * voice.rate), 0)
    engine.lib.espeak_SetParameter(_PITCH, min(99, max(0, round(50 * voice.pitch))), 0)
    engine.lib.espeak_SetParameter(_RANGE, min(99, max(0, round(50 * voice.spread))), 0)
    engine.pcm, engine.words = [], []
    # Set it each time: voiceloop's own synthesizer in this process may have replaced it.
    engine.lib.espeak_SetSynthCallback(engine.callback)
    data = text.encode()
    engine.lib.espeak_Synth(data, C.c_size_t(len(data) + 1), 0, 1, 0, _UTF8, None, None)
    if not engine.pcm:
        raise RuntimeError(f"espeak-ng says nothing for {text!r}")
    pcm = np.concatenate(engine.pcm).astype(np.float32) / 32768
    return Speech(pcm, engine.rate, _ends(text, engine.words, pcm, engine.rate))


def _ends(
    text: str, starts: list[tuple[int, float]], pcm: np.ndarray, rate: int
) -> tuple[float, ...] | None:
    """Find the end of each word in seconds: the last sound before the next word starts.

    `starts` has the first character of words, counted from 1, and their seconds. None if the
    engine's words do not match those of `text`.
    """
    begin: list[float] = []
    at = 0
    for word in text.split():
        at = text.index(word, at)
        within = [s for c, s in starts if at < c <= at + len(word)]
        if not within:
            return None
        begin.append(min(within))
        at += len(word)
    if begin != sorted(begin):
        return None
    hop = rate // 100
    envelope = np.abs(pcm[: len(pcm) // hop * hop].reshape(-1, hop)).max(1, initial=0)
    sounding = np.flatnonzero(envelope > 0.01 * envelope.max(initial=0))
    ends = []
    for limit in (*begin[1:], len(pcm) / rate):
        before = sounding[: np.searchsorted(sounding, limit * 100)]
        ends.append(min(limit, (before[-1] + 1) / 100) if len(before) else limit)
    return tuple(float(end) for end in ends)


# --- flite, in this process -----------------------------------------------------------------


class _Wave(C.Structure):
    _fields_ = [
        ("type", C.c_char_p),
        ("sample_rate", C.c_int),
        ("num_samples", C.c_int),
        ("num_channels", C.c_int),
        ("samples", C.POINTER(C.c_short)),
    ]


class _FliteVoice(C.Structure):
    _fields_ = [("name", C.c_char_p), ("features", C.c_void_p)]


# Mean and standard deviation of each voice's fundamental, in Hz.
_F0 = {"kal": (95, 11), "kal16": (95, 11), "rms": (95, 15), "slt": (170, 25), "awb": (115, 15)}
_END = "R:SylStructure.daughtern.daughtern.R:Segment.end"  # the feature for the end of a word
# flite keeps the pointers to feature names, so these must outlive the voices.
_STRETCH = C.c_char_p(b"duration_stretch")
_MEAN, _DEVIATION = C.c_char_p(b"int_f0_target_mean"), C.c_char_p(b"int_f0_target_stddev")


@cache
def _flite_library() -> C.CDLL:
    lib = C.CDLL("libflite.so.1", mode=C.RTLD_GLOBAL)
    for name in ("usenglish", "cmulex"):
        C.CDLL(f"libflite_{name}.so.1", mode=C.RTLD_GLOBAL)
    pointer = C.c_void_p
    for name, result, arguments in (
        ("flite_synth_text", pointer, [C.c_char_p, pointer]),
        ("utt_wave", C.POINTER(_Wave), [pointer]),
        ("utt_relation", pointer, [pointer, C.c_char_p]),
        ("relation_head", pointer, [pointer]),
        ("item_next", pointer, [pointer]),
        ("flite_ffeature_float", C.c_float, [pointer, C.c_char_p]),
        ("flite_feat_set_float", None, [pointer, C.c_char_p, C.c_float]),
        ("delete_utterance", None, [pointer]),
    ):
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    lib.flite_init()
    return lib


@cache
def _flite_voice(name: str) -> C._Pointer[_FliteVoice]:
    _flite_library()
    register = getattr(C.CDLL(f"libflite_cmu_us_{name}.so.1"), f"register_cmu_us_{name}")
    register.restype, register.argtypes = C.POINTER(_FliteVoice), [C.c_char_p]
    return register(None)


def _flite(text: str, voice: Voice) -> Speech:
    lib, handle = _flite_library(), _flite_voice(voice.name)
    mean, deviation = _F0[voice.name]
    features = handle.contents.features
    lib.flite_feat_set_float(features, _STRETCH, 1 / voice.rate)
    lib.flite_feat_set_float(features, _MEAN, mean * voice.pitch)
    lib.flite_feat_set_float(features, _DEVIATION, deviation * voice.spread)
    utterance = lib.flite_synth_text(text.encode(), C.cast(handle, C.c_void_p))
    wave = lib.utt_wave(utterance).contents
    pcm = np.ctypeslib.as_array(wave.samples, (wave.num_samples,)).astype(np.float32) / 32768
    rate = wave.sample_rate
    ends: list[float] = []
    token = lib.relation_head(lib.utt_relation(utterance, b"Token"))
    while token:
        ends.append(lib.flite_ffeature_float(token, f"daughtern.{_END}".encode()))
        token = lib.item_next(token)
    lib.delete_utterance(utterance)
    return Speech(pcm, rate, _checked(text, ends))


def _checked(text: str, ends: list[float]) -> tuple[float, ...] | None:
    sound = len(ends) == len(text.split()) and ends == sorted(ends) and ends[0] > 0
    return tuple(ends) if sound else None


# --- festival, one long-lived process -------------------------------------------------------


class _Festival:
    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory(prefix="festival-")
        self.wav = Path(self.folder.name) / "out.wav"
        self.process = subprocess.Popen(
            ["festival", "--pipe"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        # A token is a root of its relation and its words are leaves. There is one line for each
        # utterance, and only closing the descriptor flushes it.
        self.send(
            f"""(define (say text stretch)
              (Parameter.set 'Duration_Stretch stretch)
              (let ((u (utt.synth (eval (list 'Utterance 'Text text)))) (fd nil))
                (utt.save.wave u "{self.wav}" 'riff)
                (set! fd (fopen "/dev/stdout" "w"))
                (mapcar (lambda (i)
                    (if (item.parent i) (format fd "%f " (item.feat i "{_END}"))
                                        (format fd "|")))
                  (utt.relation.items u 'Token))
                (format fd "\\n")
                (fclose fd)))"""
        )

    def send(self, command: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()


@cache
def _festival_process() -> _Festival:
    return _Festival()


def _festival(text: str, voice: Voice) -> Speech:
    engine = _festival_process()
    quoted = text.replace("\\", " ").replace('"', " ")
    engine.send(f'(voice_{voice.name}) (say "{quoted}" {1 / voice.rate:.3f})')
    assert engine.process.stdout
    line = engine.process.stdout.readline()
    if not line:
        raise RuntimeError(f"festival stopped at {voice.name}: {text!r}")
    pcm, rate = sf.read(engine.wav, dtype="float32")
    tokens = [[float(end) for end in words.split()] for words in line.split("|")[1:]]
    return Speech(pcm, rate, _checked(text, [max(words, default=0.0) for words in tokens]))
