"""The transcripts of a whole recording, one decode after the other: as it would be heard live, or
as somebody writes it down who has all of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from msgspec.structs import replace

from voiceloop.asr.stream import StreamingTranscriber
from voiceloop.asr.turns import (
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    TurnDetector,
    TurnEnded,
    TurnEvent,
)
from voiceloop.asr.window import PAUSE_EDGE_MS
from voiceloop.audio.frames import SPEECH_RATE, Framer, SampleBuffer, samples, silence
from voiceloop.config import AsrConfig, TurnConfig
from voiceloop.engines import Asr, Vad
from voiceloop.types import AudioFrame, Pcm, Transcript

REST_MS = 2000
"""Silence behind which something new is said. In 28 recordings with pauses, 634 words, tiny.en had
37, 16 and 15 words wrong with 1, 2 and 3 s of it; heard as conversations 44."""
EDGE_MS = 200
"""What is decoded of a pause at either end: with 64 ms tiny.en had 39 words wrong there, with
this 18, with all of it 16; of synthetic voices the starter mishears what is behind a silence."""
NO_LIMIT_S = 1e6


def listen(
    blocks: Iterable[Pcm],
    vad: Vad,
    asr: Asr,
    config: AsrConfig,
    turns: TurnConfig,
    *,
    partials: bool = True,
    edge_ms: int = PAUSE_EDGE_MS,
) -> Iterator[Transcript]:
    """The transcripts of a whole stream at 16 kHz as it would be heard live, decoded on the spot.

    One thing after the other, for files and for comparison; `blocks` may be of any size. Without
    `partials` each turn is decoded once, when it has ended or fills the engine's window. Of a pause
    `edge_ms` are decoded at either end.
    """
    recent = SampleBuffer()
    keep = samples(turns.pre_roll_ms + turns.min_speech_ms) + 2 * vad.frame
    current: StreamingTranscriber | None = None
    turn = 0
    for frame, events in _heard(blocks, vad, turns):
        recent.append(frame.pcm)
        recent.drop(recent.end - keep)
        if current:
            current.feed(frame)
        for event in events:
            match event:
                case SpeechStarted():
                    turn += 1
                    current = StreamingTranscriber(turn, event, recent, config, asr.max_window_s)
                case SpeechPaused() if current:
                    current.pause(event)
                case SpeechResumed() if current:
                    current.resume(event, edge_ms=edge_ms)
                case TurnEnded() if current:
                    if final := current.end(event):
                        yield final
                case _:
                    raise AssertionError("nothing happens in a turn before it has begun")
        while (
            current and (partials or current.ended or current.full) and (job := current.next_job())
        ):
            words = asr.transcribe(job.pcm, final=job.final, timed=job.final, settled=job.settled)
            yield current.accept(job, words)


def write_down(
    blocks: Iterable[Pcm], vad: Vad, asr: Asr, config: AsrConfig, turns: TurnConfig
) -> Iterator[Transcript]:
    """The transcripts of a recording at 16 kHz, final ones of what is said between two long rests.

    Nobody waits for an answer, so what follows a pause is decoded with what was said before it, in
    windows as long as the engine takes.
    """
    turns = replace(turns, hangover_ms=max(REST_MS, turns.hangover_ms), max_turn_s=NO_LIMIT_S)
    return listen(blocks, vad, asr, config, turns, partials=False, edge_ms=EDGE_MS)


def _heard(
    blocks: Iterable[Pcm], vad: Vad, turns: TurnConfig
) -> Iterator[tuple[AudioFrame, list[TurnEvent]]]:
    """Windows with the events that each decides; at last what the end of the stream decides."""
    detector = TurnDetector(turns)
    framer = Framer(SPEECH_RATE, vad.frame)
    for pcm in chain(blocks, [silence(vad.frame - 1)]):  # the last window is filled up
        for frame in framer.feed(pcm):
            yield frame, detector.feed(frame, vad.probability(frame.pcm))
    yield AudioFrame(silence(0), SPEECH_RATE, framer.position), detector.flush()
