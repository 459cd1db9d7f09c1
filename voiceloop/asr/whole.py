"""The transcripts of a whole recording, one decode after the other: for files, and to compare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from voiceloop.asr.stream import StreamingTranscriber
from voiceloop.asr.turns import (
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    TurnDetector,
    TurnEnded,
    TurnEvent,
)
from voiceloop.audio.frames import SPEECH_RATE, Framer, SampleBuffer, samples, silence
from voiceloop.config import AsrConfig, TurnConfig
from voiceloop.engines import Asr, Vad
from voiceloop.types import AudioFrame, Pcm, Transcript


def listen(
    blocks: Iterable[Pcm],
    vad: Vad,
    asr: Asr,
    config: AsrConfig,
    turns: TurnConfig,
    *,
    partials: bool = True,
) -> Iterator[Transcript]:
    """The transcripts of a whole stream at 16 kHz as it would be heard live, decoded on the spot.

    One thing after the other, for files and for comparison; `blocks` may be of any size. Without
    `partials` each turn is decoded once, when it has ended.
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
                    current.resume(event)
                case TurnEnded() if current:
                    if final := current.end(event):
                        yield final
                case _:
                    raise AssertionError("nothing happens in a turn before it has begun")
        while current and (partials or current.ended) and (job := current.next_job()):
            words = asr.transcribe(job.pcm, final=job.final, timed=job.final, settled=job.settled)
            yield current.accept(job, words)


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
