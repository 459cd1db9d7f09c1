"""Handles requests of clients, the page and timers, e.g. to say a text, to reply, to stop a reply,
or to change settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.floor import stop
from voiceloop.dialogue.state import Announcement, AnswerRequest, Options, Returned, TurnWords
from voiceloop.languages import language
from voiceloop.types import Notice, Transcript, Word


def take(state: ConversationState, request: inputs.FromClient) -> None:
    """Apply a request to the state."""
    match request:
        case inputs.Write():
            words = (Word(request.text, 0.0, 0.0, 1.0),)
            _begin_unheard(state, state.next_number(), words, request.options)
        case inputs.BringResults():
            number = request.returned[0][0].turn
            _begin_unheard(state, number, (), request.options, request.returned)
        case inputs.Rang():
            _ring(state, request.text)
        case inputs.Announce():
            if state.settings.thinks:
                state.ask(
                    actions.Answering(_announce(state, Announcement(request.text, insists=False)))
                )
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


def _begin_unheard(
    state: ConversationState,
    number: int,
    words: tuple[Word, ...],
    options: Options | None,
    returned: Sequence[Returned] = (),
) -> None:
    """Begin a turn in which nobody speaks."""
    final = Transcript(number, 1, words, final=True)
    turn = state.add(
        number,
        state.settings.language,
        ended=True,
        words=TurnWords(final),
        # A reply with options of its own answers this turn alone, so it is not left to a later one.
        request=AnswerRequest(insisted=options is not None, options=options),
        returned=returned,
    )
    state.last_answered = turn.id
    state.ask(actions.Begin(turn.id, number, None))
    state.ask(actions.Answering(number))


def _ring(state: ConversationState, text: str) -> None:
    """Tell the user that a timer is over. If replies have no skills, only show a notice."""
    if not state.settings.reply.skills:
        state.ask(actions.Show(Notice(text)))
    else:
        _announce(state, Announcement(text, insists=True))


def _announce(state: ConversationState, announcement: Announcement) -> int:
    """Begin a turn in which `announcement` is said, and return the turn's number."""
    number = state.next_number()
    nothing = TurnWords(Transcript(number, 1, (), final=True))
    turn = state.add(
        number, state.settings.language, ended=True, words=nothing, announces=announcement
    )
    state.ask(actions.Begin(turn.id, number, None))
    return number


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
    given = {field.name: getattr(request, field.name) for field in fields(request)}
    changed = {name: value for name, value in given.items() if value is not None}
    if request.language is not None:
        changed["language"] = language(request.language)
    state.settings = replace(state.settings, **changed)


def _forget(state: ConversationState) -> None:
    """Discard the turn that is being heard, as if it had never begun."""
    turn = state.turn(state.listening)
    state.listening, state.silence, state.ending = None, None, False
    if turn is not None:
        stop(state, turn, "abandoned")
