"""Handles the reports of a reply: that it sounds, has called tools, has been said to its end, was
stopped, or has failed."""

from __future__ import annotations

from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.consent import judge_call
from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.floor import finish
from voiceloop.dialogue.state import Phase, Turn


def take(state: ConversationState, report: inputs.FromReply) -> None:
    """Apply a report of a reply to the state."""
    turn, over = state.turn(report.turn), isinstance(report, inputs.Failed | inputs.Stopped)
    if turn is None or (turn.phase is Phase.STOPPING and not over):
        return  # the turn is over, or will be once all of its work has stopped
    if not isinstance(state.model, actions.ReadOpening | None) and state.model.turn == turn.id:
        goes_on = isinstance(report, inputs.Sounding | inputs.ToolsCalled | inputs.ToolReturned)
        state.model = state.model if goes_on else None
    match report:
        case inputs.Sounding() if turn.phase is Phase.COMMITTED:
            state.change(turn.id, phase=Phase.SPEAKING)
        case inputs.Sounding():
            pass
        case inputs.ToolsCalled():
            _call(state, turn, report)
        case inputs.ToolReturned():
            state.ask(actions.BringResult(turn.id, report.call, report.result))
        case inputs.Replied(dropped=True):
            state.change(turn.id, phase=Phase.HEARING, read="")
        case inputs.Replied():
            finish(state, turn, "done")
        case inputs.Failed():
            finish(state, turn, "failed")
        case inputs.Stopped():
            finish(state, turn, turn.outcome or "interrupted")


def _call(state: ConversationState, turn: Turn, report: inputs.ToolsCalled) -> None:
    """Request that the called tools run, except those that a client runs."""
    ends = not any(call.client for call in report.calls)  # else the model goes on to speak later
    for call in report.calls:
        if not call.client:
            judged = judge_call(state, turn, call, ask=ends)
            state.ask(actions.CallTool(turn.id, call, *judged))
