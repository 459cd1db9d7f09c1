"""The commands of `voiceloop bench`: what they take, what they print, and their exit status.

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

from voiceloop import startup
from voiceloop.config import SECTIONS
from voiceloop.errors import ConfigError, MissingExtra, VoiceloopError
from voiceloop.flags import POSITIONAL, Command, Commands, written
from voiceloop.outputs import keep
from voiceloop.terminal import tell

if TYPE_CHECKING:
    from voiceloop.bench.progress import Progress
    from voiceloop.bench.record import BenchRecord


Found: TypeAlias = "tuple[BenchRecord, Mapping[str, object]]"
"""A record, and other JSON that belongs beside it in a report, by its file's name."""


class Bench(Command, frozen=True, kw_only=True):
    """What every measurement takes."""

    json: bool = False
    """Print one JSON object on one line."""
    report: Annotated[Path | None, written("DIR")] = None
    """Write the tables as report.md; beside it the JSON, and of `latency` the traces."""

    @property
    def inputs(self) -> Sequence[Path | None]:
        """Folders that are read, so that the report overwrites none."""
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
    """The model that decides; none: llm.target."""
    draft: Annotated[str | None, written("MODEL")] = None
    """The model that drafts tokens; none: llm.draft."""
    prompts: Annotated[Path | None, written("FILE")] = None
    """Questions, one on a line; none: held-out ones of the starter models' domain."""
    max_new_tokens: Annotated[int, written("N")] = 64
    """Longest reply, in tokens."""
    drafts: Literal["all"] | None = None
    """Compare every draft that fits the target; what is configured, what was said before, what was
    trained, what has been pulled, and tell which is best."""
    repeats: Annotated[int, written("N")] = 3
    """Times that each mode answers each prompt; fewer where time is short."""
    sampled: bool = False
    """Draw tokens, at llm.temperature or else 0.8; otherwise replies are greedy."""
    price_per_hour: Annotated[float | None, written("X")] = None
    """What the machine costs; the table then tells the cost of 1,000 tokens."""

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
    """What is said; questions of the starter models' domain (`starter`, their default), of any
    kind (`questions`, that of other models), or recordings of `people`."""
    input: Annotated[Path | None, written("DIR")] = None
    """Recordings to hear, each one turn; NAME.txt tells what is said in NAME.wav. With `people`
    replies are brief; none: those that VOICELOOP_SPEECH names."""
    turns: Annotated[int | None, written("N")] = None
    """Things said, in every mode; none: 24 (all of --input and of `people`), or what eleven
    minutes allow."""
    modes: Annotated[str | None, written("A,B,…")] = None
    """Ways of running a session; of sequential,streaming,speculative; none: those of the suite."""
    seed: Annotated[int, written("N")] = 0
    """Draws another suite of the same kind."""


class BenchAsr(Bench, frozen=True, kw_only=True):
    """Measure the recogniser: words and time of short windows."""

    uses = ("vad", "asr", "turns")
    examples = ("voiceloop bench asr --preset cpu", "voiceloop bench asr --input recordings --json")
    docs = "docs/benchmarks.md"

    input: Annotated[Path | None, written("DIR")] = None
    """Recordings of people; none: those that VOICELOOP_SPEECH names, if it does."""
    clips: Annotated[int, written("N")] = 200
    """Questions that are spoken; half as many again are short ones."""
    seed: Annotated[int, written("N")] = 0
    """Draws other questions and voices."""


class BenchTts(Bench, frozen=True, kw_only=True):
    """Measure the synthesizer: its first sound, speed and clarity."""

    uses = ("tts", "asr")
    examples = ("voiceloop bench tts --preset cpu", "voiceloop bench tts --recognise --replies 20")
    docs = "docs/benchmarks.md"

    replies: Annotated[int, written("N")] = 50
    """Replies that are spoken."""
    recognise: bool = False
    """Have the recogniser write them down, and count the words that differ."""


class BenchLoad(Bench, frozen=True, kw_only=True):
    """Measure the server with many clients at once."""

    uses = SECTIONS
    examples = ("voiceloop bench load", "voiceloop bench load --speaking 2 --quiet 0 --idle 0")
    docs = "docs/server.md"

    suite: Literal["bargein", "questions"] = "bargein"
    """What they say: questions with long answers, or questions of any kind, briefly answered."""
    speaking: Annotated[int, written("N")] = 4
    """Clients that ask and are answered, all at the same time; one that is all there is of them
    is measured alone, and nothing else."""
    quiet: Annotated[int, written("M")] = 20
    """Clients beside them that send silence."""
    idle: Annotated[int, written("K")] = 180
    """Clients beside them that send nothing."""
    turns: Annotated[int, written("N")] = 6
    """Questions of each client that speaks."""


class BenchCompare(Command, frozen=True, kw_only=True):
    """Compare two records of latency; status 1 where the second is worse."""

    uses = ()
    examples = ("voiceloop bench compare before.json after.json",)
    docs = "docs/latency.md"

    before: Annotated[Path, POSITIONAL, written("A.json")]
    """What --json printed, or bench.json of a report."""
    after: Annotated[Path, POSITIONAL, written("B.json")]
    """Another."""


def _bench(module: str) -> Callable[[Any], int]:
    """Return what carries out a command by `run` of a module of the bench."""

    def carry_out(command: Bench) -> int:
        def run(progress: Progress) -> Found:  # the threads are bound before torch is imported
            return import_module(f"voiceloop.bench.{module}").run(command, progress)

        return measured(command, run)

    return carry_out


def measured(command: Bench, run: Callable[[Progress], Found]) -> int:
    """Run a measurement, and print and keep what it found.

    Raises MissingExtra without the packages of the extra `bench`.
    """
    keep(command.inputs, {"--report": command.report})
    _need_extra()
    startup.configure(command.settings.threads)
    from voiceloop.bench.progress import Progress
    from voiceloop.bench.report import open_folder, text, write

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


def _need_extra() -> None:
    """Raise MissingExtra unless what counts word errors and draws intervals is installed."""
    if not all(map(find_spec, ("jiwer", "scipy"))):
        raise MissingExtra("what `voiceloop bench` counts with", "bench")


def bench_compare(command: BenchCompare) -> int:
    """`voiceloop bench compare`, also written `bench --compare`."""
    _need_extra()
    from voiceloop.bench.compare import compare, text

    comparison = compare(_read(command.before), _read(command.after))
    _print(text(comparison))
    return 1 if comparison.regressed else 0


def _print(lines: str) -> None:
    """Names of models and of files are in them."""
    for line in lines.split("\n"):
        tell(line)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}", "check its name and permissions"
        ) from error
    except ValueError as error:  # no JSON, or not UTF-8
        raise VoiceloopError(
            f"{path} holds no JSON", "give what `voiceloop bench latency --json` printed"
        ) from error


COMMANDS: Commands = {
    "bench llm": (BenchLlm, _bench("llm")),
    "bench latency": (BenchLatency, _bench("latency")),
    "bench asr": (BenchAsr, _bench("asr")),
    "bench tts": (BenchTts, _bench("tts")),
    "bench load": (BenchLoad, _bench("load.measure")),
    "bench compare": (BenchCompare, bench_compare),
}
