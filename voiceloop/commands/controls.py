"""Carries out the keys that are pressed in `voiceloop talk`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING

from voiceloop.asr.pushtotalk import PushToTalk
from voiceloop.audio.switched import SwitchedMicrophone
from voiceloop.terminal import printable
from voiceloop.view.activity import LISTENING, MUTED
from voiceloop.view.keyboard import Keyboard
from voiceloop.view.rows import Status

if TYPE_CHECKING:
    from voiceloop.session import Session
    from voiceloop.wake.microphone import WakeMicrophone

PRESS = "press space to talk"


class Controls:
    """The keyboard of a conversation, and the microphone that the keys switch on and off.

    With `push_to_talk`, the space bar begins a turn of the user and ends it. With `wake`, the
    microphone sleeps between turns. `keyboard` is None if no keys can be read.
    """

    def __init__(
        self,
        keyboard: Keyboard | None,
        microphone: SwitchedMicrophone,
        push_to_talk: PushToTalk | None = None,
        wake: WakeMicrophone | None = None,
    ) -> None:
        self.keyboard = keyboard
        self._microphone = microphone
        self._push_to_talk = push_to_talk
        self._wake = wake

    def status(self, elapsed_s: float) -> Status:
        """Return the status for the view: the microphone's level and state, and the keys."""
        muted, pushed = self._microphone.muted, self._push_to_talk is not None
        idle = LISTENING
        if self._wake is not None and not self._wake.awake:
            idle = f'waiting for "{printable(self._wake.word.name)}"'
        if muted:
            idle = PRESS if pushed else MUTED
        keys = ""
        if self.keyboard and pushed:
            keys = f"space {'talk' if muted else 'send'}   esc stop   r repeat   q quit"
        elif self.keyboard:
            keys = f"space stop   m {'unmute' if muted else 'mute'}   r repeat   q quit"
        return Status(elapsed_s, self._microphone.level(), idle, keys)

    def follow(self, session: Session) -> None:
        """Keep the microphone awake while a turn of `session` is open."""
        if self._wake is not None:
            self._wake.busy = lambda: not session.idle

    async def obey(self, session: Session, end: Callable[[], None]) -> None:
        """Carry out each key that is pressed. Call `end` if the user wants to quit."""
        assert self.keyboard is not None, "there are keys"
        async with aclosing(self.keyboard.pressed()) as pressed:
            async for key in pressed:
                self.press(key, session, end)

    def press(self, key: str, session: Session, end: Callable[[], None]) -> None:
        """Carry out one key. Keys without a meaning do nothing."""
        match key.lower():
            case " " if self._push_to_talk is not None:
                self._switch(self._push_to_talk, session)
            case " " | "\x1b":
                session.cancel()
            case "m" if self._push_to_talk is None:
                self._microphone.muted = not self._microphone.muted
            case "r" if session.idle:
                session.repeat()
            case "q":
                end()
            case _:
                pass

    def _switch(self, detector: PushToTalk, session: Session) -> None:
        """If the microphone is muted, begin a turn. Otherwise mute it and end the turn at once."""
        detector.talking = self._microphone.muted
        self._microphone.muted = not detector.talking
        if not detector.talking:
            session.end_turn(detector.end())
