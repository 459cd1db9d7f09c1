"""Decides whether a tool may run that needs the user's consent.

The first call of such a tool only asks the user, in words that rules find (`question`). The same
call, with the same arguments, may run in the user's next turn, once, if that turn begins after the
question was said to its end and says nothing but yes. So no word of the model, and nothing that a
tool has returned, can replace the user's yes, or the question to which it was the answer.
"""

from __future__ import annotations

import json

from voiceloop.dialogue.actions import Verdict
from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.question import question
from voiceloop.dialogue.state import Turn
from voiceloop.types import Outcome, ToolCall


def take_consent(state: ConversationState, turn_id: int) -> None:
    """Take the words of a turn as the user's answer to the last question. Call this when the reply
    to the turn is committed. Once the model says something else, a yes is no answer any more."""
    turn = state.turn(turn_id)
    assert turn is not None, "it is being answered"
    if turn.announces:
        return
    if turn.asks:
        answered = state.asked if turn.id > state.asked_at else None
        agreed = turn.language.agrees(turn.text)
        state.agreed, state.declined = (answered, None) if agreed else (None, answered)
    state.asked = None


def note_end(state: ConversationState, turn_id: int, outcome: Outcome) -> None:
    """Note that a turn is over. If its reply asked the user, the question counts from now on, but
    only if it was said to its end."""
    if state.asking and state.asking[0] == turn_id:
        if outcome == "done":
            state.asked, state.asked_at = state.asking[1], state.begun
        state.asking = None


def judge_call(
    state: ConversationState, turn: Turn, call: ToolCall, *, ask: bool
) -> tuple[Verdict, str]:
    """Return whether a call may run now, and the question with which the reply to `turn` ends if
    the user has to agree first. Without `ask` the reply cannot end with a question."""
    if not call.confirm:
        return "run", ""
    meant = call.name, json.dumps(dict(call.arguments), sort_keys=True)
    if meant == state.agreed:
        state.agreed = None
        return "run", ""
    if meant == state.declined:
        return "declined", ""
    if state.asking or not ask:
        return "later", ""
    if not (words := question(call.name, call.arguments, turn.language)):
        return "too long", ""
    state.asking = turn.id, meant
    return "ask", words
