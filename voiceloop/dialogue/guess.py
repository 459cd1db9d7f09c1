"""Decides whether a reply that was begun before the endpoint is let out, doubted or dropped."""

from __future__ import annotations

from dataclasses import replace

from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.consent import take_consent
from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.state import Phase, Turn
from voiceloop.dialogue.turnend import policy_for, take_probability
from voiceloop.languages import bare


def judge_guess(state: ConversationState, turn_id: int | None) -> None:
    """Commit a turn's guess if it is right, and drop it if it is wrong."""
    turn = state.turn(turn_id)
    if turn is None or turn.reply is None or turn.phase is not Phase.GUESSING:
        return
    if turn.words.whole:
        text = turn.text
    else:  # only a guess begun while the user spoke may rely on the hypothesis
        text = turn.hypothesis if turn.reply.ahead else ""
    if text != turn.reply.text:
        state.change(turn.id, phase=Phase.DROPPING)
        state.ask(actions.Drop(turn.id))
    elif turn.words.final:
        commit(state, turn.id)


def commit(state: ConversationState, turn_id: int) -> None:
    """Let a reply out. No other function does."""
    state.change(turn_id, phase=Phase.COMMITTED)
    take_consent(state, turn_id)
    state.ask(actions.Commit(turn_id))


def doubt(state: ConversationState, turn: Turn, report: inputs.Read) -> None:
    """Delay the guess if the end probability in `report` says that the user will probably go on.
    The language model sends this report after it has read the words, before it replies."""
    words, policy = bare(report.text), policy_for(state, turn)
    if not turn.ended and policy.unread(turn, words):
        take_probability(state, turn, report)
    known = state.turn(turn.id)
    assert known is not None and known.reply is not None, "it is being replied to"
    if policy.doubts(known, words):
        state.change(turn.id, reply=replace(known.reply, doubted=True))
        # If the user does not go on after all, the second half of the silence is long enough.
        waited_s = 0.0 if turn.silence is None else state.now - turn.silence.at
        half_s = state.settings.policy.incomplete_ms / 2000
        state.ask(actions.Hesitate(turn.id, max(0.0, half_s - waited_s)))
