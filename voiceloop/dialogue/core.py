"""The core of a dialogue: from what every stage reports to what every stage is to do.

`receive` is all of it. It waits for nothing and reads no clock, runs no engine and no thread; the
same reports at the same moments give the same actions, on any machine. One place decides here, and
many places act. docs/architecture.md has the table of what a turn can be and become.

    who reports                                takes note of it        may ask for
    the microphone, recogniser, turn model     user                    Begin, Pause, Resume, ...
    the language model                         modelqueue              Hesitate, Record
    a reply and its player                     replies                 CallTool, Finish
    a client, a timer, the page                client                  Begin, Stop, Show, ...

    then, whoever it was                       turnend.end_in_silence  EndTurn
                                               modelqueue.step         what the model does next
"""

from __future__ import annotations

from voiceloop.dialogue import client, inputs, modelqueue, replies, user
from voiceloop.dialogue.actions import Action
from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.state import ReplyProgress
from voiceloop.dialogue.turnend import end_in_silence


def receive(state: ConversationState, told: inputs.Input, now: float) -> list[Action]:
    """What is to be done, in order, now that `told` has come at `now`."""
    state.now, state.asked = now, []
    if isinstance(told, ReplyProgress):
        state.played = told
        return []  # nothing follows from it alone
    if isinstance(told, inputs.Settled):
        state.settled = True
    elif isinstance(told, inputs.FromUser):
        user.take(state, told)
    elif isinstance(told, inputs.FromModel):
        modelqueue.take(state, told)
    elif isinstance(told, inputs.FromReply):
        replies.take(state, told)
    else:
        client.take(state, told)
    end_in_silence(state)
    while modelqueue.step(state):
        pass
    return state.asked
