"""`voiceloop bench asr`: what makes the configured recogniser fast, against the model alone.

Windows no longer than they need to be should not change the words. So the same clips and their
beginnings are decoded in the configured windows and in full ones. This module knows nothing of
turns, and of an engine only what its Protocols tell.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from msgspec.structs import replace

from voiceloop.audio.frames import SPEECH_RATE, samples, silence
from voiceloop.bench import flite, suites, utterances
from voiceloop.bench.machine import most_memory_mb, surroundings
from voiceloop.bench.recognition import Compared, figures
from voiceloop.bench.record import Record
from voiceloop.bench.recordings import read_folder
from voiceloop.bench.rotation import rotation
from voiceloop.bench.sounds import at_level, room
from voiceloop.config import AsrConfig, Config
from voiceloop.engines import Asr, AsrRequest
from voiceloop.errors import ConfigError
from voiceloop.loading import load_asr
from voiceloop.types import Pcm, Word

_T = TypeVar("_T")

CUTS_S = range(2, 12)
"""Where a clip is cut for a beginning of it, in seconds."""
SHORT_WORDS = 6
"""A question of no more words is short: the least audio, and the most likely to be repeated."""
MARGIN_MS, SPEECH_DBFS = 300.0, -27.0
"""Of what is said around a short question, and its level."""


@dataclass(frozen=True, slots=True)
class Window:
    """Something to decode."""

    name: str
    pcm: Pcm
    """At 16 kHz."""
    text: str | None = None
    """What is said in it, where that is known."""


# --- what an engine may offer beside `engines.Asr` ----------------------------------------------


def full_windows(config: AsrConfig) -> AsrConfig:
    """The same model without short windows."""
    return replace(config, pad_s=None)


@runtime_checkable
class Counting(Protocol):
    """A recogniser that counts what it had to do beside decoding, such as full windows taken."""

    counters: Mapping[str, int]


# --- what is decoded ----------------------------------------------------------------------------


def prefixes(window: Window, end: int | None = None) -> list[Window]:
    """`window`, and its beginnings up to each of `CUTS_S` before sample `end`, or its own end."""
    last = len(window.pcm) if end is None else end
    cuts = (cut for cut in CUTS_S if cut * SPEECH_RATE < last)
    beginnings = (
        Window(f"{window.name} to {cut} s", window.pcm[: cut * SPEECH_RATE]) for cut in cuts
    )
    return [window, *beginnings]


def people(folder: Path) -> list[Window]:
    """The recordings in `folder`, and their beginnings; AudioError where there are none."""
    return [
        window
        for clip in read_folder(folder)
        for window in prefixes(Window(clip.name, clip.pcm, clip.said.text))
    ]


def spoken(count: int, seed: int) -> list[Window]:
    """The first clips of the suite of questions, and the beginnings of what is said in them."""
    return [
        window
        for clip in suites.build("questions", count, seed)
        for window in prefixes(Window(clip.name, clip.pcm, clip.said.text), clip.said.end)
    ]


def short(count: int, seed: int) -> list[Window]:
    """Short questions, in voices of flite and espeak-ng in turn."""
    texts = [text for text in suites.GENERAL if len(text.split()) <= SHORT_WORDS]
    rng = np.random.default_rng(seed)
    order = [texts[at] for at in rng.permutation(len(texts))]
    lines = [
        utterances.Line(
            order[number // 2 % len(order)],
            *utterances.draw_voice(rng, (flite.VOICES, utterances.VOICES)[number % 2]),
        )
        for number in range(count)
    ]
    by_flite = flite.speak(lines[::2])
    by_espeak = [one.pcm for one in utterances.speak(lines[1::2])]
    around = silence(samples(MARGIN_MS))
    made: list[Window] = []
    for number, line in enumerate(lines):
        pcm = (by_espeak if number % 2 else by_flite)[number // 2]
        sound = np.concatenate((around, at_level(pcm, SPEECH_DBFS), around))
        made.append(Window(f"short-{number:03}", sound + room(rng, len(sound)), line.text))
    return made


@dataclass(frozen=True, slots=True)
class Plan:
    """What to measure."""

    config: Config
    folder: Path | None = None
    """Recordings of people; none are decoded where it is None."""
    clips: int = 200
    """Questions spoken by flite; half as many are short ones of either synthesizer."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.clips < 2:
            raise ConfigError("at least two clips are needed", "set --clips to 2 or more")


def run(plan: Plan, progress: Callable[[str], None]) -> Record:
    """Load the recogniser and measure it; raises what loading raises, and AudioError."""
    machine = surroundings()
    progress("loading the models")
    fast = load_asr(plan.config)
    plain = load_asr(replace(plan.config, asr=full_windows(plan.config.asr)))
    return record(plan, measure(plan, plain, fast, progress), machine)


def measure(plan: Plan, plain: Asr, fast: Asr, progress: Callable[[str], None]) -> dict[str, Any]:
    """The figures of a recogniser `fast`, beside `plain`: the same model in full windows."""
    corpora = {"people": people(plan.folder)} if plan.folder else {}
    corpora["questions"] = spoken(plan.clips, plan.seed)
    corpora["short questions"] = short(plan.clips // 2, plan.seed)
    before = dict(fast.counters) if isinstance(fast, Counting) else {}
    windows = {name: figures(compare(own, plain, fast, progress)) for name, own in corpora.items()}
    counters = dict(fast.counters) if isinstance(fast, Counting) else {}
    return {
        "windows": windows,
        "counters": {name: count - before.get(name, 0) for name, count in counters.items()},
    }


def record(plan: Plan, measured: Mapping[str, Any], machine: Mapping[str, object]) -> Record:
    """What was `measured`, with all that belongs to it."""
    asr = plan.config.asr
    settings = {
        "asr": f"{asr.engine} {asr.model}",
        "compute_type": asr.compute_type,
        "pad_s": asr.pad_s,
        "clips": plan.clips,
        "seed": plan.seed,
    }
    return Record("asr", machine, settings, {"memory_mb": most_memory_mb(), **measured})


# --- decoding ----------------------------------------------------------------------------------


def compare(
    windows: Sequence[Window], plain: Asr, fast: Asr, progress: Callable[[str], None]
) -> list[Compared]:
    """Decode all `windows` with both, as the ends of turns are."""
    found: list[Compared] = []
    for number, order in rotation([("plain", plain), ("fast", fast)], len(windows)):
        window = windows[number]
        progress(f"{window.name}: {number + 1} of {len(windows)}")
        timed = {
            name: _timed(partial(asr.transcribe, AsrRequest(window.pcm))) for name, asr in order
        }
        (plain_words, plain_s), (fast_words, fast_s) = timed["plain"], timed["fast"]
        texts = _text(plain_words), _text(fast_words)
        found.append(Compared(window.name, window.text, *texts, plain_s, fast_s))
    return found


def _timed(job: Callable[[], _T]) -> tuple[_T, float]:
    begun = perf_counter()
    result = job()
    return result, perf_counter() - begun


def _text(words: Sequence[Word]) -> str:
    return " ".join(word.text for word in words)
