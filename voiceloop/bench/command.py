"""The commands of `voiceloop bench`: their options, their output and their exit status.

Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from voiceloop import process
from voiceloop.errors import MissingExtra
from voiceloop.outputs import keep
from voiceloop.settings.flags import Command, Commands, written
from voiceloop.terminal import tell

if TYPE_CHECKING:
    from voiceloop.bench.record import BenchRecord, Progress


Found: TypeAlias = "tuple[BenchRecord, Mapping[str, object]]"
"""A record, and the contents of the other JSON files of its report, by file name."""


class Bench(Command, frozen=True, kw_only=True):
    """The options of every measurement."""

    json: bool = False
    """Print one JSON object on one line."""
    report: Annotated[Path | None, written("DIR")] = None
    """Write a report into this folder: the tables as report.md, the JSON as bench.json and, for
    `latency`, the traces."""

    @property
    def inputs(self) -> Sequence[Path | None]:
        """Folders that the command reads. The report must not overwrite them."""
        return [getattr(self, "input", None)]


class BenchLlm(Bench, frozen=True, kw_only=True):
    """Measure the language model: plain and speculative decoding."""

    uses = ("llm",)
    examples = (
        "voiceloop bench llm --preset cpu --report report",
        "voiceloop bench llm --target smollm2-135m-instruct --drafts all",
    )
    docs = "docs/benchmarks.md"

    target: Annotated[str | None, written("MODEL")] = None
    """The model that decides every token. The default is llm.target."""
    draft: Annotated[str | None, written("MODEL")] = None
    """The model that drafts tokens. The default is llm.draft."""
    prompts: Annotated[Path | None, written("FILE")] = None
    """A file of questions, one on each line. The default has questions of the starter models'
    domain that these models were not trained on."""
    max_new_tokens: Annotated[int, written("N")] = 64
    """Longest reply, in tokens."""
    drafts: Literal["all"] | None = None
    """Compare every draft that fits the target. These are the configured draft, n-grams, trained
    drafts and pulled models. The record names the best."""
    repeats: Annotated[int, written("N")] = 3
    """Times that each mode answers each prompt; fewer if time is short."""
    sampled: bool = False
    """Draw tokens, at llm.temperature or else 0.8. Without this flag replies are greedy."""
    price_per_hour: Annotated[float | None, written("X")] = None
    """What the machine costs for an hour. The table then has the cost of 1,000 tokens."""

    @property
    def inputs(self) -> Sequence[Path | None]:
        return [self.prompts and self.prompts.parent]


Suite = Literal["starter", "questions", "people"]


class BenchLatency(Bench, frozen=True, kw_only=True):
    """Measure whole conversations: latency from voice to voice."""

    examples = (
        "voiceloop bench latency --report report",
        "voiceloop bench latency --preset cpu --turns 20 --json",
    )
    docs = "docs/latency.md"

    suite: Suite | None = None
    """What is said. `starter`: questions of the starter models' domain, the default for them.
    `questions`: questions of any kind, the default for other models. `people`: recordings."""
    input: Annotated[Path | None, written("DIR")] = None
    """A folder of recordings, one for each turn. NAME.txt may have the words of NAME.wav. With
    `people`, replies are brief, and the default is the folder that VOICELOOP_SPEECH names."""
    turns: Annotated[int | None, written("N")] = None
    """Number of clips in each mode. The default is 24, or all recordings of --input, but no more
    than eleven minutes allow; with `people`, all recordings."""
    modes: Annotated[str | None, written("A,B,…")] = None
    """Modes to measure, separated by commas: sequential, streaming, speculative. The default is
    all three, or speculative alone with `people`."""
    seed: Annotated[int, written("N")] = 0
    """The seed. Each seed draws another suite of the same kind."""


class BenchAsr(Bench, frozen=True, kw_only=True):
    """Measure the recogniser: words and time of short windows."""

    uses = ("vad", "asr", "turns")
    examples = ("voiceloop bench asr --preset cpu", "voiceloop bench asr --input recordings --json")
    docs = "docs/benchmarks.md"

    input: Annotated[Path | None, written("DIR")] = None
    """Recordings of people. The default is the folder that VOICELOOP_SPEECH names, if any."""
    clips: Annotated[int, written("N")] = 200
    """Number of questions; half as many short ones are added."""
    seed: Annotated[int, written("N")] = 0
    """The seed. Each seed draws other questions and voices."""


class BenchTts(Bench, frozen=True, kw_only=True):
    """Measure the synthesizer: its first sound, speed and clarity."""

    uses = ("tts", "asr")
    examples = ("voiceloop bench tts --preset cpu", "voiceloop bench tts --recognise --replies 20")
    docs = "docs/benchmarks.md"

    replies: Annotated[int, written("N")] = 50
    """Number of replies that are spoken."""
    recognise: bool = False
    """Transcribe the replies with the recogniser, and count the words that differ."""


def _bench(module: str) -> Callable[[Any], int]:
    """Return a function that carries out a command with the function `run` of
    `voiceloop.bench.MODULE`."""

    def carry_out(command: Bench) -> int:
        def run(progress: Progress) -> Found:  # imported only now, when thread counts are set
            return import_module(f"voiceloop.bench.{module}").run(command, progress)

        return measured(command, run)

    return carry_out


def measured(command: Bench, run: Callable[[Progress], Found]) -> int:
    """Run a measurement, print its record, and write the report if the command wants one.

    Raises MissingExtra without the packages of the extra `bench`.
    """
    keep(command.inputs, {"--report": command.report})
    need_extra()
    process.configure(command.settings.threads)
    from voiceloop.bench.record import Progress, open_folder, text, write

    folder = open_folder(command.report) if command.report else None
    with Progress(sys.stderr) as progress:
        record, beside = run(progress)
    if folder:
        write(folder, record, beside)
    if command.json:
        print(json.dumps(record.to_json()))
    else:
        _print(text(record))
    return 0


def need_extra() -> None:
    """Raise MissingExtra unless jiwer (for word errors) and scipy (for intervals) are installed."""
    if not all(map(find_spec, ("jiwer", "scipy"))):
        raise MissingExtra("what `voiceloop bench` counts with", "bench")


def _print(lines: str) -> None:
    """Print `lines`, made safe for a terminal because they hold names of models and of files."""
    for line in lines.split("\n"):
        tell(line)


COMMANDS: Commands = {
    "bench llm": (BenchLlm, _bench("llm")),
    "bench latency": (BenchLatency, _bench("latency")),
    "bench asr": (BenchAsr, _bench("asr")),
    "bench tts": (BenchTts, _bench("tts")),
}
