"""Decides whether a tool may run that needs the user's consent.

The first call of such a tool only has the model ask the user. The same call, with the same
arguments, may run in the user's next turn, once, if that turn says nothing but yes. So no word of
the model, and nothing that a tool has returned, can replace the user's yes.
"""

from __future__ import annotations

import json

from voiceloop.dialogue.conversationstate import ConversationState, ToolAndArguments
from voiceloop.types import ToolCall


def take_consent(state: ConversationState, turn_id: int) -> None:
    """Take the words of a turn as the user's answer to the last request for consent. Call this when
    the reply to the turn is committed."""
    turn = state.turn(turn_id)
    assert turn is not None, "it is being answered"
    if turn.asks:
        agreed = turn.language.agrees(turn.text)
        state.asked, state.agreed = frozenset(), state.asked if agreed else frozenset()


def may_run(state: ConversationState, call: ToolCall) -> bool:
    """Return whether a call may run now. If the user has to agree first, note that they are
    asked."""
    if not call.confirm:
        return True
    meant = _meant(call)
    if meant in state.agreed:
        state.agreed -= {meant}
        return True
    state.asked |= {meant}
    return False


def _meant(call: ToolCall) -> ToolAndArguments:
    return call.name, json.dumps(dict(call.arguments), sort_keys=True)
