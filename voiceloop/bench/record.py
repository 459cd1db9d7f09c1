"""The record that every measurement returns: the machine, statistics and word errors for it, and
how it is shown: progress on stderr, and the report.

`--json` prints the record, and a report keeps it as `bench.json`. The report draws it as text with
Markdown tables, for a terminal and for a file. Each row is a figure, under its name in the JSON and
in the documentation. Each column is a mode, a draft or whatever else was compared. The median comes
before other percentiles.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import resource
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from time import perf_counter
from typing import Any, TextIO, TypeVar, cast

import numpy as np
import numpy.typing as npt
import torch
from transformers import PreTrainedModel

import voiceloop
from voiceloop.asr.transcript import normalise
from voiceloop.errors import VoiceloopError
from voiceloop.languages.en import NUMBERS
from voiceloop.llm.model.decoder import Decoder
from voiceloop.settings.config import Config
from voiceloop.trace.record import percentiles

T = TypeVar("T")
Values = Mapping[str, Any]
Statistic = Callable[..., Any]
"""A function such as `np.median`, which also takes an axis."""

RESAMPLES = 4000
"""Number of bootstrap resamples."""
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
WIDE = 1000
"""Width for drawing tables, in characters: so large that no row is wrapped."""
PAUSE_S = 10.0
"""Minimum seconds between two lines, if the stream is no terminal."""


@dataclass(frozen=True, slots=True)
class BenchRecord:
    """The record of one measurement. All values can be written as JSON."""

    bench: str
    """Name of the measurement, such as `llm` or `latency`."""
    machine: Values
    """The machine, as `surroundings` describes it."""
    settings: Values
    """The plan, and the settings that matter for it."""
    figures: Values
    """The results, as medians with percentiles where possible."""
    single: Values = field(default_factory=dict[str, Any])
    """Results of single runs, if they are worth keeping. The report leaves them out."""
    summary: str = ""
    """The most important figure in a sentence, for the end of the report."""

    def to_json(self) -> dict[str, Any]:
        """Return the object that `--json` prints. Each figure is a key of the object itself."""
        about = {"bench": self.bench, "machine": self.machine, "settings": self.settings}
        return {**about, **self.figures, **self.single}


# --- the machine ---------------------------------------------------------------------------------


def describe(model: PreTrainedModel | Decoder) -> dict[str, object]:
    """Describe the machine now, with the device and the dtype of `model`."""
    device = model.device
    return surroundings() | {
        "device": device.type,
        "gpu": torch.cuda.get_device_name(device) if device.type == "cuda" else None,
        "dtype": str(model.dtype).removeprefix("torch."),
        "transformers": version("transformers"),
    }


def surroundings() -> dict[str, object]:
    """Describe the machine now: its processor, its load, the threads of torch, and versions."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "voiceloop": voiceloop.__version__,
    }


def engines(config: Config) -> dict[str, object]:
    """Return the names of the configured engines, and the limit of tokens for a reply."""
    return {
        "asr": f"{config.asr.engine} {config.asr.model}",
        "target": config.llm.target,
        "draft": config.llm.draft,
        "tts": config.tts.engine,
        "max_new_tokens": config.llm.max_new_tokens,
    }


def most_memory_mb() -> float:
    """Return the peak resident memory of this process, in MB."""
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round((held if sys.platform == "darwin" else 1024 * held) / 2**20, 1)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # not Linux
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def rotation(
    contestants: Sequence[T], times: int, limit_s: float = math.inf
) -> Iterator[tuple[int, list[T]]]:
    """Yield the numbers 0 to `times` - 1, each with all `contestants` in the order of their turns.

    The first number always comes. Another number comes only if it would end within `limit_s`
    seconds of the start, assuming that it takes as long as the longest one so far.
    """
    began, longest = perf_counter(), 0.0
    for number in range(times):
        start = perf_counter()
        if number and start - began + longest > limit_s:
            return
        first = number % len(contestants)
        yield number, [*contestants[first:], *contestants[:first]]
        longest = max(longest, perf_counter() - start)


# --- figures -------------------------------------------------------------------------------------


def spread(
    values: Iterable[float | None], points: Sequence[int] = (50, 95)
) -> dict[str, float | None]:
    """Return percentiles of the values that are not None, rounded to two decimal places. Without
    values each of them is None."""
    found = percentiles([value for value in values if value is not None], points)
    return {name: None if value is None else round(value, 2) for name, value in found.items()}


def share(part: int, whole: int) -> float | None:
    """Return `part / whole`, rounded to four decimal places; None if `whole` is 0."""
    return round(part / whole, 4) if whole else None


def bootstrap(
    values: npt.NDArray[np.float64], statistic: Statistic, confidence: float
) -> tuple[float, float]:
    """Return the bootstrap percentile interval of `statistic` over `values`, which must not be
    empty (Efron and Tibshirani 1993, chapter 13). The seed is fixed, so equal values give equal
    intervals."""
    from scipy import stats  # pyright: ignore[reportMissingTypeStubs]

    if len(values) < 2:
        return float(values[0]), float(values[0])
    found = cast(Any, stats).bootstrap(
        (values,),
        statistic,
        n_resamples=RESAMPLES,
        confidence_level=confidence,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    return float(found.confidence_interval.low), float(found.confidence_interval.high)


@dataclass(frozen=True, slots=True)
class WordErrors:
    """How a transcript differs from what was said."""

    words: int
    """Number of words that were said."""
    errors: int
    """Number of replaced, missing and added words in the alignment with the fewest errors."""
    tail: int
    """Number of words that are missing at the end of the transcript. It is the largest k with this
    property: without the last k words that were said, there are k errors fewer."""


def plain_words(text: str) -> list[str]:
    """Split `text` into words for comparison: without case and punctuation, numbers spelt out."""
    text = _NUMBER.sub(lambda number: f" {NUMBERS.cardinal(number[0])} ", text)
    return [word for word in map(normalise, re.split(r"[\s\u2010-\u2015-]+", text)) if word]


def word_errors(said: str, heard: str) -> WordErrors:
    """Compare a transcript with what was said."""
    true, found = plain_words(said), plain_words(heard)
    errors = _errors(true, found)
    lost = range(len(true), -1, -1)
    tail = next(k for k in lost if _errors(true[: len(true) - k], found) + k == errors)
    return WordErrors(len(true), errors, tail)


def _errors(true: list[str], found: list[str]) -> int:
    from jiwer import process_words

    compared = process_words(" ".join(true), " ".join(found))
    return compared.substitutions + compared.deletions + compared.insertions


def word_error_rate(compared: Iterable[WordErrors]) -> float | None:
    """Return the errors per word that was said; None if no word was said."""
    pairs = [(one.errors, one.words) for one in compared]
    words = sum(words for _, words in pairs)
    return sum(errors for errors, _ in pairs) / words if words else None


# --- the report ----------------------------------------------------------------------------------


def text(record: BenchRecord) -> str:
    """Draw a record: what was measured, the figures in tables, the machine, and the summary."""
    parts = [
        f"bench {record.bench}: {_listed(record.settings)}",
        *_tables(record.figures),
        _listed(record.machine),
        record.summary,
    ]
    return "\n\n".join(filter(None, parts))


def _tables(figures: Values) -> Iterator[str]:
    """Draw one table of all figures outside of groups, and then one table for each group."""
    groups = {name: value for name, value in figures.items() if _is_group(value)}
    alone = {name: value for name, value in figures.items() if name not in groups}
    if alone:
        yield table(("figure", ""), [*_flat(alone)])
    for name, group in groups.items():
        parts: dict[str, dict[str, str]] = {
            part: dict(_flat(own)) if _is_group(own) else {} for part, own in group.items()
        }
        rows = list(dict.fromkeys(row for own in parts.values() for row in own))
        if rows and all(map(_is_group, group.values())):
            cells = [(row, *(own.get(row, "-") for own in parts.values())) for row in rows]
            yield table((name, *parts), cells)
        elif group:
            yield table((name, ""), [*_flat(group)])


def _is_group(value: object) -> bool:
    return isinstance(value, Mapping) and "p50" not in value


def _are_runs(value: object) -> bool:
    return isinstance(value, list) and {*map(type, cast(list[object], value))} == {dict}


def _flat(figures: Values, before: str = "") -> Iterator[tuple[str, str]]:
    """Yield each figure with its name. Names in a group begin with the group's name and a dot."""
    for name, value in figures.items():
        if _is_group(value):
            yield from _flat(value, f"{before}{name}.")
        elif not _are_runs(value):  # single runs are too many for a table
            yield f"{before}{name}", _cell(value)


def _cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case float():
            return f"{value:.4g}"
        case Mapping():
            return " / ".join(map(_cell, cast(Mapping[str, Any], value).values()))
        case list() | tuple():
            return " ".join(map(_cell, cast(Sequence[object], value)[:6])) or "-"
        case _:
            return str(value)


def _listed(values: Values) -> str:
    return ", ".join(f"{name} {_cell(one)}" for name, one in values.items() if one is not None)


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Draw a table in Markdown. The first column has the names of the rows."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    drawn = Table(box=box.MARKDOWN)
    for column, name in enumerate(header):
        drawn.add_column(name, justify="right" if column else "left")
    for row in rows:
        drawn.add_row(*row)
    written = StringIO()
    console = Console(file=written, width=WIDE, markup=False, emoji=False, highlight=False)
    console.print(drawn)
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines() if line.strip())


def open_folder(path: Path) -> Path:
    """Make the folder of a report, and check before a long measurement that it can be written to.

    Raises VoiceloopError if it cannot be made or written to.
    """
    probe = path / ".voiceloop"
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise VoiceloopError(
            f"no report can be written to {path}: {error.strerror}",
            "give --report a folder that you may write to",
        ) from error
    return path


def write(folder: Path, record: BenchRecord, beside: Mapping[str, object]) -> None:
    """Write `report.md` and `bench.json` into `folder`, and each value of `beside` as JSON into a
    file named by its key."""
    (folder / "report.md").write_text(text(record) + "\n", encoding="utf-8")
    known = json.dumps(record.to_json(), indent=1)
    (folder / "bench.json").write_text(known + "\n", encoding="utf-8")
    for name, content in beside.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")


class Progress:
    """A callable that shows progress. As a context manager, it clears the line at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._shown = -PAUSE_S

    def __call__(self, text: str) -> None:
        """Show `text`. On a terminal it replaces the text before it; elsewhere it is left out if
        the last one is less than `PAUSE_S` old."""
        if self._stream.isatty():
            self._write(f"\r\x1b[K{text}")
        elif perf_counter() - self._shown >= PAUSE_S:
            self._shown = perf_counter()
            self._write(f"{text}\n")

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream.isatty():
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
