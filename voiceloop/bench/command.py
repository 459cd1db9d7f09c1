"""The commands of `voiceloop bench`: what they take, what they print, and their exit status.

Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from voiceloop import startup
from voiceloop.config import SECTIONS
from voiceloop.errors import ConfigError, VoiceloopError
from voiceloop.flags import POSITIONAL, Command, Commands, written
from voiceloop.outputs import keep
from voiceloop.terminal import tell

if TYPE_CHECKING:
    from voiceloop.bench.progress import Progress
    from voiceloop.bench.record import Record

    Found = tuple[Record, Mapping[str, object]]
    """A record, and other JSON that belongs beside it in a report, by its file's name."""


class Bench(Command, frozen=True, kw_only=True):
    """What every measurement takes."""

    json: bool = False
    """Print one JSON object on one line."""
    report: Annotated[Path | None, written("DIR")] = None
    """Write a page with tables and pictures; beside it the JSON, and of `latency` the traces."""


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
    synthetic: Annotated[str | None, written("PAIR")] = None
    """Models of these shapes instead; without trained weights: tiny, 120m+8m, 1b+0.1b, 7b+0.5b,
    8b+1b."""
    acceptance: Annotated[float, written("SHARE")] = 0.7
    """How often its draft tokens stand."""
    prompts: Annotated[Path | None, written("FILE")] = None
    """Questions, one on a line; none: held-out ones of the starter models' domain."""
    max_new_tokens: Annotated[int, written("N")] = 64
    """Longest reply, in tokens."""
    drafts: Literal["all"] | None = None
    """Compare every draft that fits the target; what is configured, what was said before, what was
    trained, what has been pulled, and tell which is best."""
    ahead: bool = False
    """Measure what is begun ahead of the user's words; llm.branches of them, 4 where that is 0: how
    often it is what is replied, and what it takes."""
    repeats: Annotated[int, written("N")] = 3
    """Times that each mode answers each prompt; fewer where time is short."""
    sampled: bool = False
    """Draw tokens, at llm.temperature or else 0.8; otherwise replies are greedy."""
    price_per_hour: Annotated[float | None, written("X")] = None
    """What the machine costs; the table then tells the cost of 1,000 tokens."""


Suite = Literal["starter", "questions", "people", "pauses", "bargein", "noise", "additions"]


class BenchLatency(Bench, frozen=True, kw_only=True):
    """Measure whole conversations: latency from voice to voice."""

    examples = (
        "voiceloop bench latency --report report",
        "voiceloop bench latency --preset cpu --turns 20 --json",
    )
    docs = "docs/latency.md"

    suite: Suite | None = None
    """What is said; questions of the starter models' domain (`starter`, their default), of any
    kind (`questions`, that of other models), recordings of `people` with silences put in, questions
    with pauses, in noise, interrupted replies, or something added after a silence."""
    input: Annotated[Path | None, written("DIR")] = None
    """Recordings to hear, each one turn; NAME.txt tells what is said in NAME.wav. With `people`
    silences are put into them; none: those that VOICELOOP_SPEECH names."""
    turns: Annotated[int | None, written("N")] = None
    """Things said, in every mode; none: 24 (all of --input, and 200 silences of `people`), or what
    eleven minutes allow."""
    modes: Annotated[str | None, written("A,B,…")] = None
    """Ways of running a session; such as speculative,streaming; none: those that suit the suite."""
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
    leavers: Annotated[int, written("N")] = 100
    """Clients that vanish in the middle of a turn, after which nothing may be left."""


class BenchCompare(Command, frozen=True, kw_only=True):
    """Compare two records of latency; status 1 where the second is worse."""

    uses = ()
    examples = ("voiceloop bench compare before.json after.json",)
    docs = "docs/latency.md"

    before: Annotated[Path, POSITIONAL, written("A.json")]
    """What --json printed, or bench.json of a report."""
    after: Annotated[Path, POSITIONAL, written("B.json")]
    """Another."""


def bench_llm(command: BenchLlm) -> int:
    """`voiceloop bench llm`."""
    if (engine := command.settings.llm.engine) != "speculative":
        raise ConfigError(
            f"llm.engine is {engine}, and bench llm measures how models decode in this process",
            "`bench latency` measures conversations with any engine",
        )

    def run(progress: Progress) -> Found:
        from voiceloop.bench import drafts
        from voiceloop.bench.llm import Plan, chosen, measure
        from voiceloop.bench.pair import NoDraft

        config = chosen(
            command.settings.llm,
            target=command.target,
            draft=command.draft,
            max_new_tokens=command.max_new_tokens,
            sampled=command.sampled,
        )
        plan = Plan(
            config,
            prompts=command.prompts,
            synthetic=command.synthetic,
            acceptance=command.acceptance,
            repeats=command.repeats,
            price_per_hour=command.price_per_hour,
        )
        if command.drafts and command.synthetic:
            raise ConfigError(
                "synthetic models have one draft", "leave out --drafts, or --synthetic"
            )
        if command.ahead and (command.synthetic or command.drafts):
            raise ConfigError(
                "--ahead measures one pair of models that know words",
                "leave out --synthetic and --drafts",
            )
        if command.ahead:
            from voiceloop.bench import branches

            return branches.measure(plan, progress), {}
        if command.drafts:
            return drafts.measure(plan, progress), {}
        try:
            return measure(plan, progress), {}
        except NoDraft:
            return drafts.measure(plan, progress, [drafts.PLAIN]), {}

    return _measured(command, run, [command.prompts and command.prompts.parent])


def bench_latency(command: BenchLatency) -> int:
    """`voiceloop bench latency`."""
    if command.input and command.suite not in (None, "people"):
        raise ConfigError("recordings and a suite were named", "give --input or --suite, not both")

    def run(progress: Progress) -> Found:
        from voiceloop.bench import latency
        from voiceloop.bench.recordings import of_people

        modes = tuple(filter(None, map(str.strip, (command.modes or "").split(","))))
        suite = command.suite or (
            latency.INPUT if command.input else latency.usual_suite(command.settings)
        )
        plan = latency.Plan(command.settings, suite, command.turns, modes, command.seed)
        folder = of_people(command.input) if suite == latency.PEOPLE else command.input
        return latency.run(plan, folder, progress)

    return _measured(command, run, [command.input])


def bench_asr(command: BenchAsr) -> int:
    """`voiceloop bench asr`."""

    def run(progress: Progress) -> Found:
        from voiceloop.bench import asr
        from voiceloop.bench.recordings import of_people

        folder = of_people(command.input)
        plan = asr.Plan(command.settings, folder, command.clips, command.seed)
        return asr.run(plan, progress), {}

    return _measured(command, run, [command.input])


def bench_tts(command: BenchTts) -> int:
    """`voiceloop bench tts`."""

    def run(progress: Progress) -> Found:
        from voiceloop.bench import tts

        plan = tts.Plan(command.settings, command.replies, command.recognise)
        return tts.run(plan, progress), {}

    return _measured(command, run)


def bench_load(command: BenchLoad) -> int:
    """`voiceloop bench load`."""

    def run(progress: Progress) -> Found:
        from voiceloop.bench.load.measure import Load, Plan

        plan = Plan(
            command.settings,
            suite=command.suite,
            speaking=command.speaking,
            quiet=command.quiet,
            idle=command.idle,
            turns=command.turns,
            leavers=command.leavers,
        )
        progress("preparing what is said")
        return Load(plan, progress).run(), {}

    return _measured(command, run)


def _measured(
    command: Bench, run: Callable[[Progress], Found], inputs: Iterable[Path | None] = ()
) -> int:
    """Run a measurement and tell what it found; its report overwrites none of `inputs`."""
    keep(inputs, {"--report": command.report})
    startup.configure(command.settings.threads)
    from voiceloop.bench.progress import Progress
    from voiceloop.bench.report import branches, drafts, draw, latency, llm, load, speech

    folder = draw.open_folder(command.report) if command.report else None
    with Progress(sys.stderr) as progress:
        record, beside = run(progress)
    reports = {
        "llm": llm.report,
        "drafts": drafts.report,
        "branches": branches.report,
        "latency": latency.report,
        "asr": speech.of_asr,
        "tts": speech.of_tts,
        "load": load.report,
    }
    report = reports[record.bench](record)
    if folder:
        draw.write(folder, record, report, beside)
    if command.json:
        print(json.dumps(record.to_json()))
    else:
        _print(draw.text(report))
    return 0


def bench_compare(command: BenchCompare) -> int:
    """`voiceloop bench compare`, also written `bench --compare`."""
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
    "bench llm": (BenchLlm, bench_llm),
    "bench latency": (BenchLatency, bench_latency),
    "bench asr": (BenchAsr, bench_asr),
    "bench tts": (BenchTts, bench_tts),
    "bench load": (BenchLoad, bench_load),
    "bench compare": (BenchCompare, bench_compare),
}
