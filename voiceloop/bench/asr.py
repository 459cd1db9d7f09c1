"""`voiceloop bench asr`: compares the short windows of the recogniser with full windows.

Short windows are faster and should not change the words. So this module decodes clips and their
beginnings twice: with the configured windows and with full windows. All decodes are final ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from msgspec.structs import replace

from voiceloop.assembly.loading import load_asr
from voiceloop.audio.frames import SPEECH_RATE, samples, silence
from voiceloop.bench import suites
from voiceloop.bench.clips import Clip, at_level, room
from voiceloop.bench.command import BenchAsr, Found
from voiceloop.bench.record import (
    BenchRecord,
    most_memory_mb,
    rotation,
    share,
    surroundings,
    word_errors,
)
from voiceloop.engines import Asr, AsrRequest
from voiceloop.errors import ConfigError
from voiceloop.settings.config import Config
from voiceloop.types import Pcm

CUTS_S = range(2, 12)
"""Lengths in seconds of the beginnings of a clip. Each beginning is decoded by itself."""
SHORT_WORDS = 6
"""Maximum number of words of a short question. Short questions are measured because a Whisper model
repeats itself most often if it has little audio."""
MARGIN_MS, SPEECH_DBFS = 300.0, -27.0
"""Silence before and after a short question in ms, and the RMS level of the question in dB relative
to full scale."""


@dataclass(frozen=True, slots=True)
class DecodeCase:
    """A piece of audio to decode: a clip or its beginning."""

    name: str
    pcm: Pcm
    """At 16 kHz."""
    text: str | None = None
    """The words that are said; None if they are not known."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Two transcripts of one piece of audio, and the seconds that each decode took."""

    case: DecodeCase
    plain: str
    """The transcript with full windows."""
    fast: str
    """The transcript with the configured windows."""
    plain_s: float
    fast_s: float


def run(command: BenchAsr, progress: Callable[[str], None]) -> Found:
    """Load the recogniser and measure it.

    Raises ConfigError for fewer than two clips, AudioError for unusable recordings, EngineError
    without espeak-ng or flite, and the errors of loading.
    """
    if command.clips < 2:
        raise ConfigError("at least two clips are needed", "set --clips to 2 or more")
    machine, asr = surroundings(), command.settings.asr
    progress("loading the models")
    fast = load_asr(command.settings)
    plain = load_asr(full_windows(command.settings))
    progress("preparing what is said")
    folder = suites.of_people(command.input)
    corpora = {"people": beginnings(suites.read_folder(folder))} if folder else {}
    corpora["questions"] = beginnings(suites.build("questions", command.clips, command.seed))
    corpora["short questions"] = short(command.clips // 2, command.seed)
    settings = {
        "asr": f"{asr.engine} {asr.model}",
        "compute_type": asr.compute_type,
        "pad_s": asr.pad_s,
        "clips": command.clips,
        "seed": command.seed,
    }
    found = measure(corpora, plain, fast, progress)
    return BenchRecord("asr", machine, settings, {"memory_mb": most_memory_mb(), **found}), {}


def full_windows(config: Config) -> Config:
    """Return `config` without short windows, so that the same recogniser decodes full windows."""
    return replace(config, asr=replace(config.asr, pad_s=None))


# --- windows to decode ---------------------------------------------------------------------------


def prefixes(window: DecodeCase, end: int | None = None) -> list[DecodeCase]:
    """Return `window`, and its beginnings of the lengths `CUTS_S` that end before sample `end`.
    `end` None is the end of `window`."""
    last = len(window.pcm) if end is None else end
    cuts = (cut for cut in CUTS_S if cut * SPEECH_RATE < last)
    return [
        window,
        *(DecodeCase(f"{window.name} to {cut} s", window.pcm[: cut * SPEECH_RATE]) for cut in cuts),
    ]


def beginnings(clips: Iterable[Clip]) -> list[DecodeCase]:
    """Return each clip, and the beginnings of it that end before its speech. If it is not known
    where the speech ends, the end of the clip is used."""
    return [
        window
        for clip in clips
        for window in prefixes(DecodeCase(clip.name, clip.pcm, clip.said.text), clip.said.end)
    ]


def short(count: int, seed: int) -> list[DecodeCase]:
    """Return `count` short questions, spoken alternately by flite and by espeak-ng."""
    texts = [text for text in suites.GENERAL if len(text.split()) <= SHORT_WORDS]
    rng = np.random.default_rng(seed)
    order = [texts[at] for at in rng.permutation(len(texts))]
    lines = [
        suites.Line(
            order[number // 2 % len(order)],
            *suites.draw_voice(rng, (suites.FLITE_VOICES, suites.ESPEAK_VOICES)[number % 2]),
        )
        for number in range(count)
    ]
    pcms = (
        suites.by_flite(lines[::2]),
        [suites.resampled(one.pcm, one.rate) for one in suites.by_espeak(lines[1::2])],
    )
    around = silence(samples(MARGIN_MS))
    made: list[DecodeCase] = []
    for number, line in enumerate(lines):
        pcm = at_level(pcms[number % 2][number // 2], SPEECH_DBFS)
        sound = np.concatenate((around, pcm, around))
        made.append(DecodeCase(f"short-{number:03}", sound + room(rng, len(sound)), line.text))
    return made


# --- decoding, and figures of it ------------------------------------------------------------------


def measure(
    corpora: Mapping[str, Sequence[DecodeCase]],
    plain: Asr,
    fast: Asr,
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """Decode all `corpora`, pieces of audio by the name of their corpus, with both recognisers.
    Return the figures of `fast` in comparison with `plain`, which decodes full windows."""
    before = _counted(fast)
    windows = {name: figures(compare(own, plain, fast, progress)) for name, own in corpora.items()}
    counters = {name: count - before.get(name, 0) for name, count in _counted(fast).items()}
    return {"windows": windows, "counters": counters}


def _counted(asr: Asr) -> dict[str, int]:
    """Return the counters of a recogniser, such as `short_windows`; empty if it has none."""
    return dict(getattr(asr, "counters", {}))


def compare(
    windows: Sequence[DecodeCase], plain: Asr, fast: Asr, progress: Callable[[str], None]
) -> list[Compared]:
    """Decode each of `windows` with both recognisers. Each recogniser is the first for every other
    window."""
    found: list[Compared] = []
    for number, order in rotation([("plain", plain), ("fast", fast)], len(windows)):
        window = windows[number]
        progress(f"{window.name}: {number + 1} of {len(windows)}")
        texts, seconds = dict[str, str](), dict[str, float]()
        for name, asr in order:
            begun = perf_counter()
            words = asr.transcribe(AsrRequest(window.pcm))
            seconds[name] = perf_counter() - begun
            texts[name] = " ".join(word.text for word in words)
        both = texts["plain"], texts["fast"], seconds["plain"], seconds["fast"]
        found.append(Compared(window, *both))
    return found


def figures(compared: Sequence[Compared]) -> dict[str, Any]:
    """Return how many words of the two transcripts differ, and how long the decodes took.
    `compared` must not be empty."""
    differ = [word_errors(one.plain, one.fast) for one in compared]
    worst, window = max(zip(differ, compared, strict=True), key=lambda pair: pair[0].errors)
    words, errors = sum(own.words for own in differ), sum(own.errors for own in differ)
    known = [(one.case.text, one) for one in compared if one.case.text is not None]
    full = [word_errors(text, one.plain) for text, one in known]
    short = [word_errors(text, one.fast) for text, one in known]
    plain_s, fast_s = [one.plain_s for one in compared], [one.fast_s for one in compared]
    return {
        "windows": len(compared),
        "words": words,
        "words_that_differ": errors,
        "share": share(errors, words),
        "worst": {
            "name": window.case.name,
            "words": worst.errors,
            "full": window.plain,
            "short": window.fast,
        },
        "texts_that_differ": sum(own.errors > 0 for own in differ),
        "full_ms": round(1000 * median(plain_s), 2),
        "short_ms": round(1000 * median(fast_s), 2),
        "time_ratio": round(sum(fast_s) / sum(plain_s), 3),
        "said": {
            "windows": len(known),
            "words": sum(own.words for own in full),
            "errors_full": sum(own.errors for own in full),
            "errors_short": sum(own.errors for own in short),
        },
    }
