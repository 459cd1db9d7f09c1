"""The core of a dialogue: maps the reports of all stages to the actions that stages carry out.

`receive` is the whole core. It waits for nothing and reads no clock, and it runs no engine and no
thread. The same reports at the same times give the same actions on any machine. All decisions are
made here and carried out elsewhere. docs/architecture.md has the table of a turn's phases.

    source of a report                         module that takes it    possible actions
    the microphone, recogniser, turn model     user                    Begin, PauseReply, ...
    the language model                         modelqueue              Hesitate, ReadWords, ...
    a reply and its player                     this one                CallTool, Finish
    a client, a timer, the page                this one                Begin, Stop, Show, ...

    after that, for every report               endpoint.end_in_silence  EndTurn
                                               modelqueue.step         the model's next work
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from msgspec.structs import asdict

from voiceloop.dialogue import actions, inputs, modelqueue, user
from voiceloop.dialogue.actions import Action
from voiceloop.dialogue.consent import judge_call
from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.endpoint import end_in_silence
from voiceloop.dialogue.floor import finish, stop
from voiceloop.dialogue.state import (
    Announcement,
    AnswerRequest,
    Options,
    Phase,
    ReplyProgress,
    Returned,
    Turn,
    TurnWords,
)
from voiceloop.languages import language
from voiceloop.types import Notice, Transcript, Word


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
        _take_of_reply(state, report)
    else:
        _take_of_client(state, report)
    end_in_silence(state)
    while modelqueue.step(state):
        pass
    return state.requested


def _take_of_reply(state: ConversationState, report: inputs.FromReply) -> None:
    """Apply a report of a reply to the state."""
    turn, over = state.turn(report.turn), isinstance(report, inputs.Failed | inputs.Stopped)
    if turn is None or (turn.phase is Phase.STOPPING and not over):
        return  # the turn is over, or will be once all of its work has stopped
    if not isinstance(state.model, actions.ReadOpening | None) and state.model.turn == turn.id:
        goes_on = isinstance(report, inputs.Sounding | inputs.ToolsCalled | inputs.ToolReturned)
        state.model = state.model if goes_on else None
    match report:
        case inputs.Sounding():
            if turn.phase is Phase.COMMITTED:
                state.change(turn.id, phase=Phase.SPEAKING)
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


def _take_of_client(state: ConversationState, request: inputs.FromClient) -> None:
    """Apply a request to the state."""
    match request:
        case inputs.Write() | inputs.BringResults():
            _write(state, request)
        case inputs.Rang() if state.settings.reply.skills:
            _announce(state, Announcement(request.text, insists=True))
        case inputs.Rang():  # replies have no skills, so it is only shown
            state.ask(actions.Show(Notice(request.text)))
        case inputs.Announce():
            if state.settings.thinks:
                turn = _announce(state, Announcement(request.text, insists=False))
                state.ask(actions.Answering(turn.number))
        case inputs.Respond():
            _respond(state, request.options)
        case inputs.Cancel():
            _cancel(state, request.number)
        case inputs.Rewrite():
            state.rewrite, state.unread = request.rewrite, state.abilities.prefills
            if isinstance(state.model, actions.ReadOpening):
                state.ask(actions.LeaveOpening())
        case inputs.Forget():
            _forget(state)
        case inputs.SettingsChanged():
            _conduct(state, request)


def _write(state: ConversationState, request: inputs.Write | inputs.BringResults) -> None:
    """Begin a turn with what the user has written, or with the results of tools."""
    returned: Sequence[Returned] = ()
    if isinstance(request, inputs.Write):
        number, words = state.next_number(), (Word(request.text, 0.0, 0.0, 1.0),)
    else:
        returned, words = request.returned, ()
        number = returned[0][0].turn
    # A reply with options of its own answers this turn alone, so it is not left to a later one.
    answer = AnswerRequest(insisted=request.options is not None, options=request.options)
    turn = _begin_unheard(state, number, words, request=answer, returned=returned)
    state.last_answered = turn.id
    state.ask(actions.Answering(number))


def _announce(state: ConversationState, announcement: Announcement) -> Turn:
    """Begin a turn in which `announcement` is said."""
    return _begin_unheard(state, state.next_number(), (), announces=announcement)


def _begin_unheard(
    state: ConversationState, number: int, words: tuple[Word, ...], **known: Any
) -> Turn:
    """Begin a turn in which nobody speaks, with the fields `known`, and return it."""
    said = TurnWords(Transcript(number, 1, words, final=True))
    turn = state.add(number, state.settings.language, ended=True, words=said, **known)
    state.ask(actions.Begin(turn.id, number, None))
    return turn


def _respond(state: ConversationState, options: Options | None) -> None:
    """Answer the newest turn that has ended, unless its answer was already requested."""
    over = [turn for turn in state.turns if turn.ended and turn.outcome is None]
    if not over or over[-1].request.made:
        return
    turn = over[-1]
    state.change(turn.id, request=AnswerRequest(insisted=True, options=options))
    state.last_answered = turn.id
    state.ask(actions.Answering(turn.number))


def _cancel(state: ConversationState, number: int | None) -> None:
    """Stop the reply that was begun last, if it may be seen or heard. If `number` is given, stop it
    only if it answers the turn of that number."""
    turn = state.turn(state.last_answered)
    if turn is None or number not in (None, turn.number):
        return
    if turn.words.final:  # otherwise it is only a guess, which nobody sees
        stop(state, turn, "interrupted", audible=True)
        state.ask(actions.Answering(turn.number))


def _conduct(state: ConversationState, request: inputs.SettingsChanged) -> None:
    """Replace the settings that `request` gives. Those that are None stay as they are."""
    changed = {name: value for name, value in asdict(request).items() if value is not None}
    if request.language is not None:
        changed["language"] = language(request.language)
    state.settings = replace(state.settings, **changed)


def _forget(state: ConversationState) -> None:
    """Discard the turn that is being heard, as if it had never begun."""
    turn = state.turn(state.listening)
    state.listening, state.silence, state.ending = None, None, False
    if turn is not None:
        stop(state, turn, "abandoned")
