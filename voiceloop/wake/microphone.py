"""A microphone that gives silence until a wake word is said.

Sound before the wake word is replaced by silence here. So it reaches no recording, no transcript
and no language model. Frames that may contain the wake word are held back until it is known whether
they do. Then all of them are passed on at once, silenced or not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol

from voiceloop.audio.devices import Microphone
from voiceloop.audio.frames import samples
from voiceloop.types import AudioFrame


class WakeWord(Protocol):
    """Finds a wake word in one stream at 16 kHz."""

    name: str
    """The word or phrase that the user has to say."""

    @property
    def needed(self) -> int:
        """Return the earliest sample that may be passed on if the word is found later."""
        ...

    async def feed(self, frame: AudioFrame) -> int | None:
        """Take the next frame. If the word has been found, return the first sample to pass on,
        otherwise None."""
        ...

    def reset(self) -> None:
        """Forget the stream so far."""
        ...


class WakeMicrophone:
    """A microphone that passes on the frames of another one while it is awake, and silence
    otherwise.

    The wake word wakes it. It falls asleep when no turn has been open for some seconds.
    """

    def __init__(
        self,
        microphone: Microphone,
        word: WakeWord,
        open_s: float,
        changed: Callable[[bool], None] = lambda awake: None,
    ) -> None:
        """Wrap `microphone`, and let it sleep after `open_s` seconds without a turn. `changed` is
        called with True when it wakes, and with False when it falls asleep."""
        self.word = word
        self.awake = False
        self.busy: Callable[[], bool] = lambda: False
        """Function that returns whether a turn is open. The code that begins the session replaces
        it."""
        self._microphone = microphone
        self._open = samples(1000 * open_s)
        self._changed = changed
        self._busy_until = 0
        """Sample up to which a turn was open, or the microphone was asleep."""
        self._held = deque[AudioFrame]()
        """Frames that are held back."""

    @property
    def finished(self) -> bool:
        """Whether the wrapped microphone has finished, and no frame is held back."""
        return self._microphone.finished and not self._held

    async def frames(self) -> AsyncGenerator[AudioFrame, None]:
        """Yield the frames of the wrapped microphone, silent ones until the wake word is said.

        The silent frames keep time going, so timers ring while the microphone is asleep.
        """
        async with aclosing(self._microphone.frames()) as frames:
            async for frame in frames:
                if self.awake and self._goes_on(frame):
                    yield frame
                    continue
                self._held.append(frame)
                begin = await self.word.feed(frame)
                if begin is not None:
                    self.awake, self._busy_until = True, frame.end
                    self._changed(True)
                needed = frame.end if self.awake else self.word.needed
                for passed in self._passed(needed, begin):
                    yield passed
        for passed in self._passed(self._held[-1].end if self._held else 0):
            yield passed

    def hold(self) -> None:
        """Hold the wrapped microphone."""
        self._microphone.hold()

    def release(self) -> None:
        """Release the wrapped microphone."""
        self._microphone.release()

    def _goes_on(self, frame: AudioFrame) -> bool:
        """Return whether the microphone stays awake. If no turn has been open for `open_s` seconds,
        let it fall asleep."""
        if self.busy():
            self._busy_until = frame.end
        elif frame.end - self._busy_until >= self._open:
            self.awake = False
            self.word.reset()
            self._changed(False)
        return self.awake

    def _passed(self, needed: int, begin: int | None = None) -> Iterator[AudioFrame]:
        """Yield the held frames that end at sample `needed` or before. Samples before `begin` are
        silenced, or all samples if `begin` is None."""
        while self._held and self._held[0].end <= needed:
            frame = self._held.popleft()
            unheard = len(frame.pcm) if begin is None else max(0, begin - frame.start)
            pcm = frame.pcm.copy()
            pcm[:unheard] = 0
            yield replace(frame, pcm=pcm)
