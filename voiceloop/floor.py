"""Who has the floor: the reply that sounds, or the user who speaks while it does.

Someone who makes a sound while a reply plays takes the floor on trial: the reply pauses at once,
and goes on from the same sample unless `bargein.judge` finds that it was interrupted. This module
knows what a live turn consists of; it runs no stage and waits for nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio

from voiceloop.asr.stream import StreamingTranscriber
from voiceloop.bargein import DECIDE_MS, Verdict, judge
from voiceloop.languages import Language
from voiceloop.player import Player
from voiceloop.reply import Reply, Returned, Voiced
from voiceloop.runner import FIRST, LATER
from voiceloop.trace import Lane, Mark, Recorder
from voiceloop.types import Transcript

QUIET_S = 0.12
"""After so much silence the last word is over: "uh-huh" has some in the middle, and half of it may
sound like a word."""
CUT_OFF_S = 0.5
"""A user who goes on so soon after the first sound had not finished: their turn was cut off."""


@dataclass(slots=True, eq=False)
class Turn:
    """A turn of the user and the reply to it, while they are live."""

    number: int
    recorder: Recorder
    transcriber: StreamingTranscriber | None
    """None where nothing is heard: the user wrote, or a tool returned something."""
    language: Language
    """What the user speaks, or seems to."""
    guesses: int = 0
    """Replies that may still be begun before the endpoint."""
    asked: bool = True
    """The turn is to be answered."""
    detects: bool = False
    """Nobody knows for sure what the user speaks: each decode tells anew."""
    insisted: bool = False
    """Though the user may have begun to say something else."""
    returned: Sequence[Returned] = ()
    """What stands in for the user's words: results of the tools that the turn's reply called."""
    before: Turn | None = None
    """The turn before it, until this one is over."""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    over: anyio.Event = field(default_factory=anyio.Event)
    """Set once the turn's task has given everything back."""
    changed: anyio.Event = field(default_factory=anyio.Event)
    """Set, and replaced, when there is audio or an event to look at."""
    speaking: bool = True
    """The user's voice goes on."""
    ended: bool = False
    """The endpoint has been decided."""
    heard: Transcript | None = None
    """The newest transcript."""
    final: Transcript | None = None
    """Set once every sample before the endpoint has been decoded."""
    carried: str = ""
    """What the user said before, where they went on before it was answered."""
    hangover_ms: int | None = None
    """Silence that ends the turn; none while nobody knows."""
    chance: tuple[str, float | None] | None = None
    """Words that the model has read, and how likely the user ends with them, if it can tell."""
    sound: tuple[int, float] | None = None
    """Where a silence began, and how likely the user has ended by the sound before it."""
    reply: Reply | None = None
    """The newest attempt at an answer."""
    ahead: bool = False
    """It was begun while the user spoke."""
    voiced: Voiced = field(default_factory=Voiced)
    """Audio of attempts that were dropped."""
    rival: Turn | None = None
    """The turn whose reply was there to be heard when this one began."""
    contested: bool = False
    """The rival's reply is paused, and it is not decided what this is."""
    contested_at: float = 0.0
    dismissed: bool = False
    """What was said was nothing to listen to: the rival's reply has gone on."""
    cut_off: bool = False
    """The user had not finished: what they said belongs to the next turn, and the reply is void."""

    @property
    def answered(self) -> bool:
        """A reply is there to be heard; one that is only a guess is not."""
        return self.reply is not None and self.reply.committed

    def urgency(self) -> int:
        """Priority of what is done for the turn: while the user may go on, it is a guess."""
        return FIRST if self.ended else LATER

    def wake(self) -> None:
        """Let the turn's tasks look again, and judge a reply that was begun on a guess."""
        self.changed.set()
        self.changed = anyio.Event()
        reply = self.reply
        if reply is None or reply.committed or reply.dropped:
            return
        text, whole = self.understood()
        if not whole:
            text = self.hypothesis if self.ahead else ""
        if text != reply.text:
            reply.cancel()
        elif self.final is not None:
            reply.commit()

    @property
    def hypothesis(self) -> str:
        """What the user seems to have said by now, settled or not."""
        heard = self.transcriber.hypothesis if self.transcriber else ""
        return f"{self.carried} {heard}".strip()

    def understood(self) -> tuple[str, bool]:
        """What the user has said, as far as it is settled, and whether that may be all of it."""
        guess = self.final or (self.transcriber and self.transcriber.guess)
        committed = self.heard.committed_text if self.heard else ""
        text = guess.text if guess else committed
        return f"{self.carried} {text}".strip(), guess is not None


class Floor:
    """Gives the floor to the user on trial, and to one of both for good."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self._newest: Turn | None = None
        """The last turn that has contested; the verdict on an older one may still be to come."""

    def contest(self, turn: Turn, rival: Turn) -> None:
        """The user makes a sound while the reply of `rival` may be heard: pause it."""
        assert rival.reply is not None
        self._newest = turn
        turn.rival, turn.contested, turn.dismissed = rival, True, False
        turn.contested_at = anyio.current_time()
        self._player.pause()
        rival.reply.suspend()

    def weigh(self, turn: Turn) -> Verdict:
        """Decide, if it can be decided by now, whether `turn` interrupts its rival."""
        rival = turn.rival
        if rival is None or not (turn.contested or turn.dismissed):
            return Verdict.WAIT
        if rival.over.is_set():  # it failed meanwhile
            turn.contested = False
            return Verdict.WAIT
        guess = turn.final or (turn.transcriber and turn.transcriber.guess)
        heard = guess or turn.heard
        words = [word.text for word in heard.committed + heard.tentative] if heard else []
        now = anyio.current_time()
        ended = turn.recorder.at(Mark.SPEECH_END)
        waited_ms = (now - turn.contested_at) * 1000
        over = ended is not None and (now - ended >= QUIET_S or waited_ms >= DECIDE_MS)
        verdict = judge(
            words,
            turn.language,
            speaking=turn.speaking,
            settled=guess is not None,
            waited_ms=waited_ms,
            spoken=self._player.heard().words,
        )
        if verdict is Verdict.INTERRUPT and not (turn.speaking or over or turn.ended):
            return Verdict.WAIT
        if turn.dismissed:
            # A "yes" let the reply go on, and what follows is more than that.
            if verdict is Verdict.INTERRUPT:
                turn.dismissed = False
                turn.recorder.span(Lane.VAD, "interrupt", now, now)
                self._interrupt(rival, now)
                return verdict
            return Verdict.WAIT
        if verdict is Verdict.WAIT:
            return verdict
        turn.contested = False
        turn.recorder.span(Lane.VAD, verdict.name.lower(), turn.contested_at, now)
        if verdict is Verdict.INTERRUPT:
            self._interrupt(rival, turn.contested_at)
            return verdict
        turn.dismissed = True
        if self._newest is not turn:  # by now the user makes another sound
            return Verdict.WAIT
        rival.recorder.count("resumed")
        assert rival.reply is not None
        rival.reply.resume()
        self._player.resume()
        return verdict

    def _interrupt(self, rival: Turn, since: float) -> None:
        first = rival.recorder.at(Mark.FIRST_SOUND)
        if first is not None and since - first < CUT_OFF_S and not self._player.said_a_clause:
            rival.cut_off = True
            rival.recorder.count("false_cutoffs")
        if self._newest is not None:
            self._newest.contested = False  # what is said after the interruption belongs to it
        rival.scope.cancel()  # first: a reply that is stopped would take itself for played
        self._player.stop()
