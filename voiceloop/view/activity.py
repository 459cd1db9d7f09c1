"""The state of a session, in the words that a terminal shows, such as `listening`."""

from __future__ import annotations

from voiceloop.types import Clause, Event, FloorChange, TokenBurst, ToolCall, TurnHeard, TurnTrace

LISTENING = "listening"
MUTED = "muted"
HEARING = "hearing you"
THINKING = "thinking"
ASKING = "asking a tool"
SPEAKING = "speaking"
PAUSED = "paused"
MOST_TELLING = (PAUSED, SPEAKING, ASKING, THINKING, HEARING)
"""The states of turns, by precedence. If several turns are not over, only the state that comes
first in this list is shown."""


class Activity:
    """The state of each turn that is not over."""

    def __init__(self) -> None:
        self._doing: dict[int, str] = {}
        self._paused: set[int] = set()

    @property
    def state(self) -> str:
        """The state of the session; `LISTENING` between turns."""
        states = {PAUSED if turn in self._paused else doing for turn, doing in self._doing.items()}
        return next((state for state in MOST_TELLING if state in states), LISTENING)

    def follow(self, event: Event) -> None:
        """Take the next event, in order."""
        match event:
            case TurnHeard(turn=turn, over=over):
                self._doing[turn] = THINKING if over else HEARING
            case ToolCall(turn=turn, result=""):
                self._doing[turn] = ASKING
            case TokenBurst(turn=turn):
                if self._doing.get(turn) != SPEAKING:
                    self._doing[turn] = THINKING
            case Clause(turn=turn):
                self._doing[turn] = SPEAKING
            case FloorChange(rival=rival, change=change):
                self._change_floor(rival, paused=change == "paused")
            case TurnTrace(turn=turn):
                self._doing.pop(turn, None)
                self._paused.discard(turn)
            case _:
                pass

    def _change_floor(self, rival: int, *, paused: bool) -> None:
        if paused and rival in self._doing:
            self._paused.add(rival)
        else:
            self._paused.discard(rival)
