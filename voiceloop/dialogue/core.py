"""The core of a dialogue: maps the reports of all stages to the actions that stages carry out.

`receive` is the whole core. It waits for nothing and reads no clock, and it runs no engine and no
thread. The same reports at the same times give the same actions on any machine. All decisions are
made here and carried out elsewhere. docs/architecture.md has the table of a turn's phases.

    source of a report                         module that takes it    possible actions
    the microphone, recogniser, turn model     user                    Begin, PauseReply, ...
    the language model                         modelqueue              Hesitate, ReadWords, ...
    a reply and its player                     replies                 CallTool, Finish
    a client, a timer, the page                client                  Begin, Stop, Show, ...

    after that, for every report               turnend.end_in_silence  EndTurn
                                               modelqueue.step         the model's next work
"""

from __future__ import annotations

from voiceloop.dialogue import client, inputs, modelqueue, replies, user
from voiceloop.dialogue.actions import Action
from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.state import ReplyProgress
from voiceloop.dialogue.turnend import end_in_silence


def receive(state: ConversationState, report: inputs.Input, now: float) -> list[Action]:
    """Update the state with `report`, which came at time `now`, and return the actions to do, in
    order."""
    state.now, state.requested = now, []
    if isinstance(report, ReplyProgress):
        state.played = report
        return []  # it is only used to judge the next report
    if isinstance(report, inputs.Settled):
        state.settled = True
    elif isinstance(report, inputs.FromUser):
        user.take(state, report)
    elif isinstance(report, inputs.FromModel):
        modelqueue.take(state, report)
    elif isinstance(report, inputs.FromReply):
        replies.take(state, report)
    else:
        client.take(state, report)
    end_in_silence(state)
    while modelqueue.step(state):
        pass
    return state.requested
