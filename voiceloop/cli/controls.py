"""Carries out the keys that are pressed in `voiceloop talk` and the lines that are typed, and opens
its wake word."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from voiceloop.asr.turns import ManualTurnDetector
from voiceloop.audio.devices import Mute
from voiceloop.errors import ConfigError
from voiceloop.settings.config import Config
from voiceloop.terminal import printable
from voiceloop.types import Event, Transcript, Word
from voiceloop.view.keyboard import Keyboard
from voiceloop.view.rows import LISTENING, MUTED, Status

if TYPE_CHECKING:
    from voiceloop.audio.devices import Microphone
    from voiceloop.audio.soundcard import SoundcardSpeaker
    from voiceloop.cli.conversation import TerminalConversation
    from voiceloop.engines import Engines
    from voiceloop.session import Session
    from voiceloop.wake.acoustic import SoundedWord
    from voiceloop.wake.microphone import WakeMicrophone, WakeWord
    from voiceloop.wake.phrase import Phrase


PRESS = "press space to talk"


class Controls:
    """The keyboard of a conversation, and the microphone that the keys switch on and off.

    With `push_to_talk`, the space bar begins a turn of the user and ends it. With `wake`, the
    microphone sleeps between turns. `keyboard` is None if no keys can be read.
    """

    def __init__(
        self,
        keyboard: Keyboard | None,
        mute: Mute,
        push_to_talk: ManualTurnDetector | None = None,
        wake: WakeMicrophone | None = None,
        *,
        figures: bool = False,
    ) -> None:
        self.keyboard = keyboard
        self._mute = mute
        self._push_to_talk = push_to_talk
        self._wake = wake
        self._figures = figures
        self._typed: str | None = None
        self._all_keys = False
        self._show: Callable[[Event], None] | None = None

    def status(self, elapsed_s: float) -> Status:
        """Return the status for the view: the microphone's level and state, and the keys."""
        muted, pushed = self._mute.muted, self._push_to_talk is not None
        idle = LISTENING
        if self._wake is not None and not self._wake.awake:
            idle = f'waiting for "{printable(self._wake.word.name)}"'
        if muted:
            idle = PRESS if pushed else MUTED
        found = self._keys() if self.keyboard else {}
        keys = "   ".join(f"{key} {word}" for key, (word, _) in found.items() if key not in "rf")
        if self._all_keys:
            keys = "\n".join(f"{key:<6} {does}" for key, (_, does) in found.items())
        level = self._mute.level()
        return Status(elapsed_s, level, idle, keys, self._typed, self._figures)

    def _keys(self) -> Mapping[str, tuple[str, str]]:
        """Return for each key what it does: in a word, and in a sentence."""
        muted, stop = self._mute.muted, ("stop", "stops the reply")
        send = "talk" if muted else "send", "begins what you say, and sends it"
        mute = "unmute" if muted else "mute", "mutes the microphone, or unmutes it"
        pushed = self._push_to_talk is not None
        return {
            **({"space": send, "esc": stop} if pushed else {"space": stop, "m": mute}),
            "t": ("type", "opens a line to type; Esc closes it"),
            "r": ("repeat", "says again what you heard of the last reply"),
            "f": ("figures", "shows how long each answer takes, or hides it"),
            "?": ("keys", "shows all keys, or hides them"),
            "q": ("quit", "quits, as Ctrl-C does"),
        }

    def follow(self, session: Session, show: Callable[[Event], None] | None) -> None:
        """Keep the microphone awake while a turn of `session` is open. `show` shows what is typed;
        without it, as in a view that does not draw the status, nothing can be typed."""
        self._show = show
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
        if self._typed is not None:
            self._type(key, self._typed, session)
            return
        match key.lower():
            case " " if self._push_to_talk is not None:
                self._switch(self._push_to_talk, session)
            case " " | "\x1b":
                session.cancel()
            case "m" if self._push_to_talk is None:
                self._mute.muted = not self._mute.muted
            case "r" if session.idle:
                session.repeat()
            case "t" if self._show:
                self._typed = ""
            case "f" if self._show:
                self._figures = not self._figures
            case "?" if self._show:
                self._all_keys = not self._all_keys
            case "q":
                end()
            case _:
                pass

    def _type(self, key: str, typed: str, session: Session) -> None:
        """Change the line that is typed, or send it as a turn. An empty line that is sent, and Esc,
        close it."""
        match key:
            case "\r" | "\n":
                words = tuple(Word(word, 0.0, 0.0) for word in typed.split())
                self._typed = "" if words else None
                if words and self._show and (turn := session.write(typed.strip())) is not None:
                    self._show(Transcript(turn, 1, words, final=True))
            case "\x1b":
                self._typed = None
            case "\x7f" | "\b":
                self._typed = typed[:-1]
            case "\x15":  # Ctrl-U
                self._typed = ""
            case _ if key.isprintable():
                self._typed = typed + key
            case _:
                pass

    def _switch(self, detector: ManualTurnDetector, session: Session) -> None:
        """If the microphone is muted, begin a turn. Otherwise mute it and end the turn at once."""
        detector.talking = self._mute.muted
        self._mute.muted = not detector.talking
        if not detector.talking:
            session.end_turn(detector.end())


def configured_word(settings: Config) -> Phrase | SoundedWord | None:
    """Return the configured wake word or wake phrase; None if there is none.

    Raises ConfigError if both are configured, and for a phrase with too few or too many letters.
    For a wake word, also raises the errors of `voiceloop.wake.acoustic.sounded_word`.
    """
    wake = settings.wake
    if wake.phrase and wake.model:
        raise ConfigError(
            "wake.phrase and wake.model are both set, and one of them is to be said",
            "leave one of them empty",
        )
    if wake.model:
        from voiceloop.wake.acoustic import sounded_word

        return sounded_word(wake.model)
    if wake.phrase:
        from voiceloop.wake.phrase import Phrase

        return Phrase(wake.phrase)
    return None


def prepared(
    word: Phrase | SoundedWord, engines: Engines, settings: Config
) -> tuple[WakeWord, Engines]:
    """Return the detector of `word` and the engines for the session.

    The recogniser of `engines` finds a wake phrase. Then the returned engines have a recogniser
    that leaves the phrase out of the user's words. For a wake word they are `engines` unchanged.
    """
    from voiceloop.assembly.loading import load_vad
    from voiceloop.wake.phrase import AddressedAsr, Phrase
    from voiceloop.wake.spoken import SpokenPhrase

    if not isinstance(word, Phrase):
        return word, engines
    found = SpokenPhrase(word, load_vad(settings), engines, settings.turns)
    asr = AddressedAsr(engines.asr, word, lambda: found.said_until)
    return found, replace(engines, asr=asr)


def wake_microphone(
    word: Phrase | SoundedWord,
    microphone: Microphone,
    speaker: SoundcardSpeaker,
    terminal: TerminalConversation,
    settings: Config,
) -> WakeMicrophone:
    """Return a microphone that passes on the sound of `microphone` only after `word` was said.

    The speaker plays a chime when the microphone wakes or falls asleep. This also replaces the
    engines of `terminal` by those of `prepared`, and tells the user what to say.
    """
    from voiceloop.wake.microphone import WakeMicrophone
    from voiceloop.wake.phrase import chime

    found, terminal.engines = prepared(word, terminal.engines, settings)
    open_s = settings.wake.open_s
    terminal.note(f'say "{found.name}" to be heard, until {open_s:g} s after the last turn')

    def sound(awake: bool) -> None:
        speaker.overlay(chime(speaker.rate, opens=awake))

    return WakeMicrophone(microphone, found, open_s, sound)
