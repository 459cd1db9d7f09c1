"""The commands of `voiceloop bench`: what they take, what they print, and their exit status.

Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from msgspec.structs import replace

from voiceloop.config import SECTIONS
from voiceloop.errors import ConfigError, VoiceloopError
from voiceloop.flags import Command, Commands
from voiceloop.outputs import keep


class BenchLlm(Command, frozen=True, kw_only=True):
    """Measure the language model: plain and speculative decoding, ours and transformers'."""

    uses = ("llm",)

    target: Annotated[str | None, tyro.conf.arg(metavar="MODEL")] = None
    """The model that decides; none: llm.target."""
    draft: Annotated[str | None, tyro.conf.arg(metavar="MODEL")] = None
    """The model that guesses; none: llm.draft."""
    synthetic: Annotated[str | None, tyro.conf.arg(metavar="PAIR")] = None
    """Models of these shapes instead, without trained weights: tiny, 120m+8m, 1b+0.1b, 8b+1b."""
    acceptance: Annotated[float, tyro.conf.arg(metavar="SHARE")] = 0.7
    """How often a guess of the synthetic draft stands."""
    prompts: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Questions, one on a line; none: held-out ones of the starter models' domain."""
    max_new_tokens: Annotated[int, tyro.conf.arg(metavar="N")] = 64
    """Longest reply, in tokens."""
    repeats: Annotated[int, tyro.conf.arg(metavar="N")] = 3
    """Times that each mode answers each prompt, if there is time enough."""
    sampled: bool = False
    """Draw tokens, at llm.temperature or else 0.8; otherwise replies are greedy."""
    price_per_hour: Annotated[float | None, tyro.conf.arg(metavar="X")] = None
    """What the machine costs; the table then tells the cost of 1,000 tokens."""
    json: bool = False
    """Print one JSON object on one line."""
    report: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Write a page with pictures, and the JSON, into this folder."""


Suite = Literal["starter", "questions", "people", "pauses", "bargein", "noise", "additions"]
SPEECH = "VOICELOOP_SPEECH"
"""The variable that names a folder of people's recordings."""


class BenchLatency(Command, frozen=True, kw_only=True):
    """Measure whole conversations at real-time pace: voice-to-voice latency and its parts."""

    suite: Suite | None = None
    """What is said: questions of the starter models' domain (`starter`, their default), of any
    kind (`questions`, that of other models), recordings of `people` with silences put in, questions
    with pauses, in noise, interrupted replies, or something added after a silence."""
    input: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Recordings to hear, each one turn; NAME.txt tells what is said in NAME.wav. With `people`
    silences are put into them; none: those that VOICELOOP_SPEECH names."""
    turns: Annotated[int | None, tyro.conf.arg(metavar="N")] = None
    """Things said, in every mode; none: 24 (all of --input, and 200 silences of `people`), or what
    eleven minutes allow."""
    modes: Annotated[str | None, tyro.conf.arg(metavar="A,B,…")] = None
    """Ways of running a session, such as speculative,streaming; none: those that suit the suite."""
    seed: Annotated[int, tyro.conf.arg(metavar="N")] = 0
    """Draws another suite of the same kind."""
    json: bool = False
    """Print one JSON object on one line."""
    report: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Write a page with pictures, the JSON and the traces into this folder."""


class BenchAsr(Command, frozen=True, kw_only=True):
    """Measure the recogniser: the words and time of short windows against full ones."""

    uses = ("vad", "asr", "turns")

    input: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Recordings of people; none: those that VOICELOOP_SPEECH names, if it does."""
    clips: Annotated[int, tyro.conf.arg(metavar="N")] = 200
    """Questions that are spoken; half as many again are short ones."""
    seed: Annotated[int, tyro.conf.arg(metavar="N")] = 0
    """Draws other questions and voices."""
    json: bool = False
    """Print one JSON object on one line."""
    report: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Write the tables and the JSON into this folder."""


class BenchTts(Command, frozen=True, kw_only=True):
    """Measure the synthesizer: its first sound, its speed, and what a recogniser hears of it."""

    uses = ("tts", "asr")

    replies: Annotated[int, tyro.conf.arg(metavar="N")] = 50
    """Replies that are spoken."""
    recognise: bool = False
    """Have the recogniser write them down, and count the words that differ."""
    json: bool = False
    """Print one JSON object on one line."""


class BenchLoad(Command, frozen=True, kw_only=True):
    """Measure the server with many clients at once, who talk, listen, interrupt and vanish."""

    uses = SECTIONS

    suite: Literal["bargein", "questions"] = "bargein"
    """What they say: questions with long answers, or questions of any kind, briefly answered."""
    speaking: Annotated[int, tyro.conf.arg(metavar="N")] = 4
    """Clients that ask and are answered, all at the same time; one that is all there is of them
    is measured alone, and nothing else."""
    quiet: Annotated[int, tyro.conf.arg(metavar="M")] = 20
    """Clients beside them that send silence."""
    idle: Annotated[int, tyro.conf.arg(metavar="K")] = 180
    """Clients beside them that send nothing."""
    turns: Annotated[int, tyro.conf.arg(metavar="N")] = 6
    """Questions of each client that speaks."""
    leavers: Annotated[int, tyro.conf.arg(metavar="N")] = 100
    """Clients that vanish in the middle of a turn, after which nothing may be left."""
    json: bool = False
    """Print one JSON object on one line."""


class BenchCompare(Command, frozen=True, kw_only=True):
    """Compare two records of `bench latency`; status 1 where the second is worse beyond noise."""

    uses = ()

    before: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="A.json")]
    """What --json printed, or bench.json of a report."""
    after: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="B.json")]
    """Another."""


def bench_llm(command: BenchLlm) -> int:
    """`voiceloop bench llm`."""
    if (engine := command.settings.llm.engine) != "speculative":
        raise ConfigError(
            f"llm.engine is {engine}, and bench llm measures how models decode in this process",
            "`bench latency` measures conversations with any engine",
        )
    keep([command.prompts and command.prompts.parent], {"--report": command.report})
    from voiceloop.loading import set_threads

    set_threads(command.settings)
    from voiceloop.bench.llm import Plan, chosen, measure
    from voiceloop.bench.progress import Progress
    from voiceloop.bench.report import open_folder, table, write

    folder = open_folder(command.report) if command.report else None
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
    with Progress(sys.stderr) as progress:
        record = measure(plan, progress)
    if folder:
        write(folder, record)
    print(json.dumps(record) if command.json else table(record))
    return 0


def bench_latency(command: BenchLatency) -> int:
    """`voiceloop bench latency`."""
    keep([command.input], {"--report": command.report})
    from voiceloop.loading import open_engines, set_threads

    set_threads(command.settings)
    from voiceloop.bench import page, summary
    from voiceloop.bench.latency import (
        INPUT,
        PEOPLE,
        Plan,
        check,
        clips,
        measure,
        played,
        record,
        usual_suite,
    )
    from voiceloop.bench.machine import surroundings
    from voiceloop.bench.pair import without_draft
    from voiceloop.bench.progress import Progress
    from voiceloop.bench.report import open_folder
    from voiceloop.bench.takes import Studio

    if command.input and command.suite not in (None, PEOPLE):
        raise ConfigError("recordings and a suite were named", "give --input or --suite, not both")
    modes = tuple(filter(None, map(str.strip, (command.modes or "").split(","))))
    suite = command.suite or (INPUT if command.input else usual_suite(command.settings))
    plan = Plan(command.settings, suite, command.turns, modes, command.seed)
    check(plan)
    recordings = _recordings(command.input) if suite == PEOPLE else command.input
    if suite == PEOPLE and recordings is None:
        raise ConfigError(
            "no recordings of people are known", f"name their folder with --input, or in {SPEECH}"
        )
    folder = open_folder(command.report) if command.report else None
    with Progress(sys.stderr) as progress:
        machine = surroundings()
        progress("preparing what is said")
        said = clips(plan, recordings)
        progress("loading the models")
        with open_engines(plan.settings) as engines:
            studio = Studio(engines, without_draft(engines.llm), plan.settings)
            measured = measure(studio, plan, said, progress)
            calibration = engines.llm.calibrations.get("en")  # what is said is English
    found = record(plan, measured, planned=len(said), machine=machine, calibration=calibration)
    if folder:
        page.write(folder, found, played(measured))
    print(json.dumps(found) if command.json else summary.text(found))
    return 0


def bench_asr(command: BenchAsr) -> int:
    """`voiceloop bench asr`."""
    from voiceloop.loading import load_asr, set_threads

    set_threads(command.settings)
    from voiceloop.bench import recognition
    from voiceloop.bench.asr import Plan, full_windows, measure, record
    from voiceloop.bench.machine import surroundings
    from voiceloop.bench.progress import Progress
    from voiceloop.bench.report import open_folder

    settings = command.settings
    plan = Plan(settings, _recordings(command.input), command.clips, command.seed)
    folder = open_folder(command.report) if command.report else None
    with Progress(sys.stderr) as progress:
        machine = surroundings()
        progress("loading the models")
        fast = load_asr(settings)
        plain = load_asr(replace(settings, asr=full_windows(settings.asr)))
        found = record(plan, measure(plan, plain, fast, progress), machine)
    if folder:
        recognition.write(folder, found)
    print(json.dumps(found) if command.json else recognition.text(found))
    return 0


def bench_tts(command: BenchTts) -> int:
    """`voiceloop bench tts`."""
    from voiceloop.loading import load_asr, load_tts, set_threads

    set_threads(command.settings)
    from voiceloop.bench import tts
    from voiceloop.bench.machine import surroundings
    from voiceloop.bench.progress import Progress

    settings = command.settings
    plan = tts.Plan(settings, command.replies)
    with Progress(sys.stderr) as progress:
        machine = surroundings()
        progress("loading the models")
        loaded = tts.load(lambda: load_tts(settings))
        asr = load_asr(settings) if command.recognise else None
        measured = tts.measure(plan, loaded, asr, progress)
    found = tts.record(plan, loaded.tts, asr, measured, machine)
    print(json.dumps(found) if command.json else tts.text(found))
    return 0


def _recordings(given: Path | None) -> Path | None:
    """The folder of people's recordings, if one is known."""
    known = os.environ.get(SPEECH)
    return given or (Path(known) if known else None)


def bench_load(command: BenchLoad) -> int:
    """`voiceloop bench load`."""
    from voiceloop.loading import set_threads

    set_threads(command.settings)
    from voiceloop.bench.load.measure import Load, Plan
    from voiceloop.bench.load.text import text
    from voiceloop.bench.progress import Progress

    plan = Plan(
        command.settings,
        suite=command.suite,
        speaking=command.speaking,
        quiet=command.quiet,
        idle=command.idle,
        turns=command.turns,
        leavers=command.leavers,
    )
    with Progress(sys.stderr) as progress:
        progress("preparing what is said")
        found = Load(plan, progress).run()
    print(json.dumps(found) if command.json else text(found))
    return 0


def bench_compare(command: BenchCompare) -> int:
    """`voiceloop bench compare`, also written `bench --compare`."""
    from voiceloop.bench.compare import compare, text

    comparison = compare(_read(command.before), _read(command.after))
    print(text(comparison))
    return 1 if comparison.regressed else 0


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
