"""What a record of `bench latency` says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from voiceloop.bench.record import Record, Values
from voiceloop.bench.report import svg
from voiceloop.bench.report.draw import (
    Cell,
    Picture,
    Report,
    Table,
    counted,
    engines,
    machine,
    number,
    percent,
    spreads,
    tabled,
)
from voiceloop.trace.record import PARTS, Lane, Mark, of_json, percentiles
from voiceloop.trace.waterfall import spans, stages
from voiceloop.types import TurnTrace

PART_KINDS = dict(zip(PARTS, ("p1", "p2", "p3", "p4", "p5"), strict=True))
POLICY_KINDS = {"fixed": "p5", "trailing-words": "p2", "p-eot": "p1"}
BEFORE_MS, AFTER_MS = 1200, 300
"""How much of a turn is drawn before its user has ended, and after the reply has begun."""

MODES: dict[str, Cell] = {
    "voice to voice": spreads("voice_to_voice_ms"),
    "to sound": spreads("endpoint_to_sound_ms"),
    "endpoint": spreads("endpoint_delay_ms"),
    "cut off": lambda mode: percent(mode["false_cutoffs"]),
    "missed": number("missed_endpoints"),
    "word errors": lambda mode: percent(mode["wer"]),
    "tails lost": number("tail_words_lost"),
    "wasted": number("wasted_tokens"),
    "CPU s": number("cpu_s_per_turn", "{:.2f}"),
    "underruns": number("underruns"),
}
PARTIALS: dict[str, Cell] = {
    "partials": number("partials"),
    "backlog": spreads("backlog_ms"),
    "behind": spreads("behind_ms"),
    "at the most": spreads("before_the_next_ms"),
}
SOUNDS: dict[str, Cell] = {
    **{
        name.replace("_", " "): number(name)
        for name in ("sounds", "triggered", "resumed", "interrupted", "played_to_the_end")
    },
    "pause after": spreads("trigger_ms"),
    "decided after": spreads("decided_ms"),
    "silent after": spreads("stop_ms"),
}
CARRIED: dict[str, Cell] = {
    "clips": number("clips"),
    "begun too early": number("begun_too_early"),
    "clause kept": number("first_clause_kept"),
    "share": lambda own: percent(own["share"]),
}
WHOLE: dict[str, Cell] = {
    "own pauses that ended a turn": lambda own: "{} of {}".format(
        own["own_pauses_that_ended_a_turn"], own["own_pauses"]
    ),
    "with a text": number("with_text"),
    "word errors": lambda own: f"{own['word_errors']} of {own['words']}",
}
JUDGES = {
    "p_eot": "P(end of turn)",
    "sound": "sound of the voice",
    "both": "both",
    "trailing_words": "last word alone",
}
COMPARED: dict[str, tuple[str, Callable[[str], str]]] = {
    "ratios": ("{:.2f}", lambda name: f"{name.replace('_over_', ' ÷ ')}, voice to voice p50"),
    "cost_ms_without": ("{:+.0f} ms", lambda name: f"voice to voice with {name}"),
    "cpu_over_streaming": ("{:.2f}", lambda name: f"CPU time, {name} ÷ streaming"),
}
"""How figures of one mode over another are told."""
NOTES = (
    "Voice to voice is the time from the true end of speech to the first audible sample of the"
    " reply: what a person waits. The silence after which a turn counts as over is part of it.",
    "The end of speech is known to the sample, not detected. All modes but the policies of"
    " endpointing replay the decisions of the speculative one on the same clip, so none wins by"
    " deciding later. A clip is heard in all modes one directly after the other, each time another"
    " one first.",
    "To sound is the time from that decision to the first audible sample: what the software adds."
    " Endpoint is the time from the true end to the decision.",
    "The parts are those of the turn in the middle of each mode, so they sum to its whole. A moment"
    " of the wait belongs to the first part, in their order, that was not done.",
    "Tails lost are words at the end of what was said that are missing, beyond those that the"
    " recogniser misses when it is given the whole recording.",
    "CPU is the processor time of all threads while a clip was heard and answered, the median of"
    " clips. Of replies only the first moments are played, but for the suite of interruptions;"
    " underruns after them are not looked for.",
    "Unless recordings are given, speech is synthetic, and the starter recogniser was trained on"
    " such. It shows what the software does with time, not how well people are understood.",
    "Beside this page: perfetto-MODE.json, every turn of a mode, which ui.perfetto.dev opens.",
)


def report(record: Record) -> Report:
    """What `record` says."""
    tables = [table for table in _tables(record.figures) if table.rows]
    memory = f"{record.figures['memory_mb']:.0f} MB at the most"
    return Report(
        "Voice to voice, measured",
        _subject(record),
        tables,
        machine(record.machine, memory),
        pictures=list(_pictures(record.figures)),
        notes=NOTES,
    )


def _subject(record: Record) -> list[str]:
    settings = record.settings
    said = f"{settings['turns']} of {settings['turns_planned']} things said"
    where = f"Suite {settings['suite']}, seed {settings['seed']}"
    lines = [
        f"{where}: {said}, in {counted(len(record.figures['modes']), 'mode')}.",
        f"{engines(settings)} Endpoint {settings['endpoint']}: {settings['complete_ms']},"
        f" {settings['hangover_ms']} or {settings['incomplete_ms']} ms.",
    ]
    if settings["turns"] < settings["turns_planned"]:
        lines.append("Time was up before all had been said; --turns sets how many, however long.")
    return lines


def _tables(found: Values) -> Iterator[Table]:
    """All that is told of modes, and of what only some suites try."""
    modes: Mapping[str, Values] = found["modes"]
    yield tabled("Modes (latency p50 / p95 in ms)", "mode", MODES, modes, "speculative")
    compared = (
        (word(name), form.format(value))
        for section, (form, word) in COMPARED.items()
        for name, value in found[section].items()
        if value is not None
    )
    yield Table("Modes compared", ("the same things said", "median"), tuple(compared))
    partials = {name: own["partials"] for name, own in modes.items() if own["partials"]["partials"]}
    title = "Partial transcripts: how far behind the speaker (p50 / p95 in ms)"
    yield tabled(title, "mode", PARTIALS, partials)
    if "endpointing" in found:
        yield _cut_offs(found["endpointing"])
        yield _areas(found["endpointing"]["auc"])
    if "people" in found:
        whole = {str(found["people"]["recordings"]): found["people"]}
        title = "Recordings as they are, in the speculative mode"
        yield tabled(title, "recordings", WHOLE, whole)
    if "interruptions" in found:
        sounds = {**found["interruptions"]["kinds"], "all": found["interruptions"]["all"]}
        title = "Sounds made while the reply played (p50 / p95 in ms)"
        yield tabled(title, "kind", SOUNDS, sounds)
    carried = {
        f"{mode}, {kind}": own
        for mode, kinds in found.get("carry_over", {}).items()
        for kind, own in kinds.items()
    }
    yield tabled("First clauses kept where the user went on", "mode, addition", CARRIED, carried)


def _cut_offs(endpointing: Values) -> Table:
    modes: Mapping[str, Mapping[str, Values]] = endpointing["cut_offs"]

    def cell(standing: str) -> Cell:
        def ended(mode: Values) -> str:
            own = mode[standing]
            return f"{own['ended']} of {own['pauses']} ({percent(own['cut_off'])})"

        return ended

    columns = {standing: cell(standing) for own in modes.values() for standing in own}
    title = "Pauses taken for the end, by how the words before them stand"
    return tabled(title, "mode", columns, modes)


def _areas(auc: Values) -> Table:
    about = f"{auc['ends']} ends, {auc['incomplete']} pauses after incomplete prefixes"
    rows = [(label, f"{auc[name]:.3f}") for name, label in JUDGES.items() if auc[name] is not None]
    title = f"Telling an end from a pause ({about})"
    return Table(title, ("judged by", "area under ROC"), tuple(rows))


# --- pictures ------------------------------------------------------------------------------------


def _pictures(found: Values) -> Iterator[Picture]:
    yield Picture(
        "Voice to voice, in milliseconds",
        distribution(found),
        "A dot is a turn; the long mark is the median, the short one the 95th percentile.",
    )
    parts = {
        mode: svg.stacked(_median_turn(found, mode), PART_KINDS, f"{mode}, ")
        for mode in found["modes"]
    }
    yield Picture(
        "Where the median turn's time goes",
        svg.bars("Parts of the median turn by mode", parts, "{:.0f} ms"),
        key=PART_KINDS,
    )
    if endpointing := found.get("endpointing"):
        yield Picture(
            "Endpointing: cut-offs against delay",
            trade_off(endpointing),
            "As the silence that ends a turn grows, the delay grows and fewer pauses are taken for"
            " the end. Lines: pauses after incomplete prefixes; dashes: all pauses; rings: as"
            " configured. Computed from the judgements and the true lengths of the pauses.",
            {policy: POLICY_KINDS[policy] for policy in endpointing["curves"]},
        )
    for which, turn in found["turns"].items():
        took = f"{turn['trace']['voice_to_voice_ms']:.0f} ms, {turn['clip']}"
        yield Picture(
            f"The {which} turn of the speculative mode: {took}",
            turn_waterfall(of_json(turn["trace"]), turn["trace"]["parts_ms"]),
            "Upright lines: the true end of speech, the endpoint decision, the first sound.",
            {**PART_KINDS, "a stage at work": "span"},
        )


def distribution(found: Values) -> str:
    """Voice-to-voice of every turn by mode, with the median and the 95th percentile."""
    rows = {mode: [took for took, _ in _answered(found, mode)] for mode in found["modes"]}
    drawn = svg.Rows([*rows], 0.0, max((max(own) for own in rows.values() if own), default=1.0))
    for row, (mode, times) in enumerate(rows.items()):
        y = drawn.middle(row)
        kind = "p1" if mode == "speculative" else "p4"
        # Spread by the golden ratio, so that equal times lie side by side.
        drawn.parts += [
            svg.dot(drawn.x(time), y + ((index * 0.618) % 1 - 0.5) * 16, 3, f"{kind} dot")
            for index, time in enumerate(times)
        ]
        if not times:
            continue
        marks = {name: value or 0.0 for name, value in percentiles(times).items()}
        for (name, value), high in zip(marks.items(), (12, 7), strict=True):
            drawn.upright(value, y - high, y + high, "mark", f"{mode} {name}")
        drawn.figure(row, "{p50:.0f} · {p95:.0f} ms".format(**marks))
    return drawn.drawn("Voice to voice by mode, in milliseconds")


def _answered(found: Values, mode: str) -> list[tuple[float, Values]]:
    """Voice-to-voice of each clip that was answered, and its take."""
    takes: list[Values] = [clip["takes"][mode] for clip in found["clips"]]
    times = [(take["voice_to_voice_ms"], take) for take in takes]
    return [(time, take) for time, take in times if time is not None]


def _median_turn(found: Values, mode: str) -> Mapping[str, float]:
    """The parts of the turn in the middle; the lower of two."""
    answered = sorted(_answered(found, mode), key=lambda pair: pair[0])
    return answered[(len(answered) - 1) // 2][1]["parts_ms"] if answered else {}


def trade_off(endpointing: Values) -> str:
    """Delay against cut-offs for each policy, as the silence that it waits for grows.

    Lines are pauses after incomplete prefixes, dashes all pauses; a ring is what is configured.
    """
    wide = svg.WIDTH - svg.SIDE - 30
    curves: Mapping[str, Sequence[Values]] = endpointing["curves"]
    highest = max((one["delay_ms"] or 0.0 for own in curves.values() for one in own), default=0.0)
    step = svg.round_step(highest, 8)
    longest = step * max(1, math.ceil(highest / step))
    parts = svg.percent_axis()
    for tick in range(round(longest / step) + 1):
        x = svg.SIDE + wide * tick * step / longest
        parts.append(svg.text(x, svg.BASE + 18, f"{tick * step:g}", "muted", "middle"))
    parts.append(svg.text(svg.WIDTH - 30, svg.BASE + 36, "mean endpoint delay, ms", "muted", "end"))
    for policy, own in curves.items():
        for figure, dash in (("cut_offs", " dashed"), ("cut_offs_incomplete", "")):
            kind = f"{POLICY_KINDS[policy]} curve{dash}"
            known = [one for one in own if None not in (one["delay_ms"], one[figure])]
            places = {
                one["ms"]: (svg.SIDE + wide * one["delay_ms"] / longest, svg.level(one[figure]))
                for one in known
            }
            parts.append(svg.path(places.values(), kind))
            parts += [
                svg.dot(*places[one["ms"]], 5, f"{kind} ring", _configured(policy, one, figure))
                for one in known
                if one["ms"] == endpointing["configured_ms"][policy]
            ]
    return svg.picture("False cut-offs against endpoint delay", svg.BASE + 44, parts)


def _configured(policy: str, one: Values, figure: str) -> str:
    return f"{policy} as configured: {one['delay_ms']:.0f} ms, {one[figure]:.1%}"


def turn_waterfall(trace: TurnTrace, parts_ms: Mapping[str, float]) -> str:
    """One turn that was answered: what the wait was spent on, and when each stage worked."""
    end = trace.marks[Mark.SPEECH_END]

    def ms(moment: float) -> float:
        return (moment - end) * 1000

    lanes = {**stages(trace), "judgement": spans(trace, Lane.VAD)}
    last = ms(trace.marks[Mark.FIRST_SOUND]) + AFTER_MS
    drawn = svg.Rows(["wait", *lanes], -BEFORE_MS, last, figures=False)
    drawn.bars(0, svg.stacked(parts_ms, PART_KINDS))
    for row, own in enumerate(lanes.values(), 1):
        shown = (one for one in own if ms(one.end) >= -BEFORE_MS and ms(one.start) <= last)
        pieces = [(one.name, ms(one.start), ms(one.end)) for one in shown]
        boxes = [svg.Bar(a, b, "span", f"{name}: {b - a:.1f} ms") for name, a, b in pieces]
        drawn.bars(row, boxes, least=1.5)
    for mark in (Mark.SPEECH_END, Mark.ENDPOINT, Mark.FIRST_SOUND):
        if mark in trace.marks:
            drawn.upright(ms(trace.marks[mark]), svg.TOP, drawn.bottom, "mark", mark)
    return drawn.drawn("One turn, in milliseconds after the end of speech")
