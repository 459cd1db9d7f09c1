"""The spans of a turn for OpenTelemetry, made from the turn's record after its end.

This module maps a `TurnTrace` to plain data. It knows neither the SDK nor a clock: times are those
of the record, in seconds of the event loop's clock. All names of the GenAI conventions are here.
The conventions are not stable yet (https://github.com/open-telemetry/semantic-conventions-genai),
and the packages' constants are deprecated, so the names are literals.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from voiceloop.trace.record import (
    DROPPED_REPLY,
    PARTS,
    REPLY,
    TOOL,
    Lane,
    Mark,
    endpoint_to_sound_ms,
    parts_ms,
    voice_to_voice_ms,
)
from voiceloop.types import FILTERED, StageSpan, TurnTrace

# Names of the GenAI conventions.
OPERATION, PROVIDER, MODEL = "gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"
INVOKE_AGENT, CHAT, EXECUTE_TOOL = "invoke_agent", "chat", "execute_tool"
AGENT, CONVERSATION = "gen_ai.agent.name", "gen_ai.conversation.id"
OUTPUT_TYPE, SPEECH, TEXT = "gen_ai.output.type", "speech", "text"
INPUT_TOKENS, OUTPUT_TOKENS = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
FIRST_CHUNK_S = "gen_ai.response.time_to_first_chunk"
TOOL_NAME, TOOL_TYPE, FUNCTION = "gen_ai.tool.name", "gen_ai.tool.type", "function"
TOOL_CALL, TOOL_ARGUMENTS = "gen_ai.tool.call.id", "gen_ai.tool.call.arguments"
INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
ERROR, OTHER_ERROR = "error.type", "_OTHER"

# Names that no convention has.
OWN = "voiceloop"
DROPPED, HEARD = f"{OWN}.dropped", f"{OWN}.heard"
VOICE_TO_VOICE, ENDPOINT, STT, TTS = "voice_to_voice", "endpoint", "stt", "tts"
PLAYBACK, SKILL = "playback", "skill"
WAITS = dict(zip(PARTS, (ENDPOINT, STT, CHAT, TTS, PLAYBACK), strict=True))
"""Name of the stage for which the user waits, by part of the voice-to-voice latency."""

Attribute = str | int | float | bool


@dataclass(frozen=True, slots=True)
class OtelSpan:
    """A span of a turn, with the spans within it."""

    name: str
    start: float
    """Seconds of the loop's clock."""
    end: float
    """Seconds of the loop's clock."""
    attributes: Mapping[str, Attribute] = field(default_factory=dict[str, Attribute])
    children: Sequence[OtelSpan] = ()
    linked: bool = False
    """True for a dropped reply. It is no part of the answer, so its span has a link to the span of
    the turn."""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class About:
    """Facts about the conversation that are not in the record of a turn."""

    conversation: str
    llm: str
    """Name of the language model."""
    asr: str
    tts: str


@dataclass(frozen=True, slots=True)
class WordsSaid:
    """What was said in a turn."""

    transcript: str
    reply: str
    """The text of the reply, as the model wrote it."""


Report = Callable[[TurnTrace, About, WordsSaid], None]
"""A function that takes each turn that has ended."""


def turn_span(trace: TurnTrace, about: About, words: WordsSaid | None) -> OtelSpan | None:
    """Return the span of a turn, or None if there was nothing to answer.

    Without `words`, no span tells what anybody said or wrote. A turn that was abandoned had
    nothing to answer, unless a reply to it was begun.
    """
    dropped = [span for span in trace.spans if _is_dropped(span)]
    if trace.outcome == "abandoned" and not dropped:
        return None
    children = [
        *_latency(trace),
        *_between(trace, ENDPOINT, Mark.SPEECH_END, Mark.ENDPOINT),
        *_work(trace.spans, STT, Lane.ASR, {f"{OWN}.model": about.asr}),
        *(_reply(span, about, dropped=True) for span in dropped),
        *_answer(trace, about),
        *(_tool(span, words) for span in trace.spans if _is_tool(span)),
        *_work(_kept(trace), TTS, Lane.TTS, {f"{OWN}.model": about.tts}),
        *_between(trace, PLAYBACK, Mark.FIRST_SOUND, Mark.SOUND_END),
    ]
    if not (trace.marks or children):
        return None
    moments = [*trace.marks.values(), *(at for one in children for at in (one.start, one.end))]
    return OtelSpan(
        f"{INVOKE_AGENT} {OWN}",
        min(moments),
        max(moments),
        _turn(trace, about) | ({} if words is None else _said(trace, words)),
        children,
        failed=trace.outcome == "failed",
    )


def _turn(trace: TurnTrace, about: About) -> dict[str, Attribute]:
    """Return the attributes of the whole turn."""
    sounds = any(mark in trace.marks for mark in (Mark.FIRST_SYNTHESIS, Mark.SYNTHESIS_END))
    known: dict[str, Attribute | None] = {
        OPERATION: INVOKE_AGENT,
        PROVIDER: OWN,
        AGENT: OWN,
        CONVERSATION: about.conversation,
        OUTPUT_TYPE: SPEECH if sounds else TEXT,
        ERROR: OTHER_ERROR if trace.outcome == "failed" else None,
        f"{OWN}.turn": trace.turn,
        f"{OWN}.outcome": trace.outcome,
        f"{OWN}.voice_to_voice_ms": voice_to_voice_ms(trace),
        f"{OWN}.endpoint_to_sound_ms": endpoint_to_sound_ms(trace),
    }
    counted = ("replies_dropped", "wasted_tokens", "underruns")
    known |= {f"{OWN}.{name}": trace.counters.get(name) for name in counted}
    return {name: value for name, value in known.items() if value is not None}


def _said(trace: TurnTrace, words: WordsSaid) -> dict[str, Attribute]:
    """Return the words of a turn, as the conventions write messages."""

    def message(role: str, text: str, **rest: str) -> str:
        parts = [{"type": "text", "content": text}]
        return json.dumps([{"role": role, "parts": parts, **rest}], ensure_ascii=False)

    ended = "length" if trace.counters.get("too_long") else "stop"
    ended = "content_filter" if trace.counters.get(FILTERED) else ended
    return {
        INPUT: message("user", words.transcript),
        OUTPUT: message("assistant", words.reply.strip(), finish_reason=ended),
        HEARD: trace.heard,
    }


def _latency(trace: TurnTrace) -> list[OtelSpan]:
    """Return a span of the voice-to-voice latency, if there is one, with a span of each part. The
    parts follow each other without a gap, so that their sum is the latency."""
    parts, whole = parts_ms(trace), voice_to_voice_ms(trace)
    if parts is None or whole is None:
        return []
    start = trace.marks[Mark.SPEECH_END]
    waits: list[OtelSpan] = []
    reached = 0.0
    for part, ms in parts.items():
        begun, reached = reached, reached + ms
        about: dict[str, Attribute] = {f"{OWN}.part": part, f"{OWN}.part_ms": ms}
        name, end = f"wait for {WAITS[part]}", start + reached / 1000
        waits.append(OtelSpan(name, start + begun / 1000, end, about))
    return [OtelSpan(VOICE_TO_VOICE, start, waits[-1].end, {}, waits)]


def _between(trace: TurnTrace, name: str, begin: Mark, end: Mark) -> list[OtelSpan]:
    """Return the span from the mark `begin` to the mark `end`; none if one of them is missing or
    they are in the other order."""
    start, until = trace.marks.get(begin), trace.marks.get(end)
    if start is None or until is None or until < start:
        return []
    return [OtelSpan(name, start, until)]


def _work(
    spans: Sequence[StageSpan], name: str, lane: Lane, attributes: Mapping[str, Attribute]
) -> list[OtelSpan]:
    """Return a span from the first to the last work of a stage, if it worked."""
    own = [span for span in spans if span.lane == lane]
    if not own:
        return []
    start, end = min(span.start for span in own), max(span.end for span in own)
    return [OtelSpan(name, start, end, attributes)]


def _answer(trace: TurnTrace, about: About) -> list[OtelSpan]:
    """Return the spans of the reply that was let out: one for each request to the language model,
    or one for the answer of a skill.

    A request ends with its last token. The next one begins when a tool has returned. Between the
    two, a call may have waited until the user had finished.
    """
    spans = _kept(trace)
    reply = next((one for one in spans if (one.lane, one.name) == (Lane.REPLY, REPLY)), None)
    if reply is None:
        return []
    if "by" in reply.args:
        return [_reply(reply, about)]
    requests: list[OtelSpan] = []
    steps: list[StageSpan] = []
    since, read = reply.start, trace.counters.get("tokens_read")
    for span in spans:  # in the order of their ends, so that `reply` is the last
        if span.lane == Lane.DECODE:
            steps.append(span)
        elif span is reply or _is_tool(span):
            until = steps[-1].end if steps else span.end
            attributes = _counts(steps, since)
            if read and not requests:  # the record has one sum for the whole turn
                attributes[INPUT_TOKENS] = int(read)
            if steps or (span is reply and not requests):
                requests.append(_chat(about, since, until, attributes))
            steps, since = [], span.end
    return requests


def _kept(trace: TurnTrace) -> Sequence[StageSpan]:
    """Return the spans after the last dropped reply, in the order in which they were recorded."""
    spans = trace.spans
    dropped = [index for index, span in enumerate(spans) if _is_dropped(span)]
    return spans[dropped[-1] + 1 :] if dropped else spans


def _is_dropped(span: StageSpan) -> bool:
    return span.lane == Lane.REPLY and span.name == DROPPED_REPLY


def _is_tool(span: StageSpan) -> bool:
    return span.lane == Lane.REPLY and span.name.startswith(f"{TOOL} ")


def _counts(steps: Sequence[StageSpan], since: float) -> dict[str, Attribute]:
    """Return the token counts of a request to the language model that was made at `since`; empty if
    the request gave no tokens."""
    if not steps:
        return {}

    def total(name: str) -> int:
        return round(sum(float(step.args.get(name, 0)) for step in steps))

    return {
        OUTPUT_TOKENS: total("tokens"),
        FIRST_CHUNK_S: round(min(step.end for step in steps) - since, 6),
        f"{OWN}.drafted": total("drafted"),
        f"{OWN}.accepted": total("accepted"),
    }


def _reply(span: StageSpan, about: About, *, dropped: bool = False) -> OtelSpan:
    """Return the span of a whole attempt to answer, by the language model or by a skill."""
    attributes: dict[str, Attribute] = {DROPPED: True} if dropped else {}
    if "by" in span.args:
        return OtelSpan(SKILL, span.start, span.end, attributes, linked=dropped)
    attributes[OUTPUT_TOKENS] = round(float(span.args["generated"]))
    return _chat(about, span.start, span.end, attributes, linked=dropped)


def _chat(
    about: About,
    start: float,
    end: float,
    attributes: Mapping[str, Attribute],
    *,
    linked: bool = False,
) -> OtelSpan:
    named = {OPERATION: CHAT, PROVIDER: OWN, MODEL: about.llm, **attributes}
    return OtelSpan(f"{CHAT} {about.llm}", start, end, named, linked=linked)


def _tool(span: StageSpan, words: WordsSaid | None) -> OtelSpan:
    """Return the span of a tool that voiceloop ran."""
    name = span.name.removeprefix(f"{TOOL} ")
    attributes: dict[str, Attribute] = {
        OPERATION: EXECUTE_TOOL,
        TOOL_NAME: name,
        TOOL_TYPE: FUNCTION,
        TOOL_CALL: span.args["call"],
    }
    if words is not None:
        attributes[TOOL_ARGUMENTS] = span.args["arguments"]
    return OtelSpan(f"{EXECUTE_TOOL} {name}", span.start, span.end, attributes)
