"""Decides what the language model does next, and whether a reply that was begun before the endpoint
is let out, doubted or dropped.

The model does one thing at a time, for the first turn that is not over.
"""

from __future__ import annotations

from dataclasses import replace

from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.consent import take_consent
from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.endpoint import judge_end, policy_for, take_probability
from voiceloop.dialogue.floor import finish
from voiceloop.dialogue.state import Attempt, Phase, Turn
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


def take(state: ConversationState, report: inputs.FromModel) -> None:
    """Apply a report of the language model to the state."""
    if isinstance(report, inputs.Rewritten | inputs.OpeningRead):
        state.model = None
        if state.rewrite == report.rewritten:  # no newer history was requested
            state.rewrite = None
        return
    turn = state.turn(report.turn)
    if turn is None or turn.phase is Phase.STOPPING:
        return
    if isinstance(state.model, actions.StartReply):  # the first words of the reply are there
        doubt(state, turn, report)
        return
    state.model = None
    take_probability(state, turn, report)
    # During the read, a client may have brought results of tools that an earlier turn called.
    comes_next = state.rewrite is None and state.turns[0].id == turn.id
    if comes_next and _expects_no_more(state, turn.id, report.text):
        _reply(state, turn.id, state.turns[0].hypothesis, ahead=True)


def step(state: ConversationState) -> bool:
    """Give the model its next work. Returns False if there is none, or if it has to wait."""
    if state.model or state.ending or not state.settled:
        return False
    if not state.turns:
        return _read_opening(state)
    turn = state.turns[0]
    if turn.phase is Phase.STOPPING or turn.dismissed:
        return False
    if not state.settings.thinks:
        return _end_with_words(state, turn)
    if turn.returned or turn.announces:
        _reply(state, turn.id, "")
    elif _reads_to_judge(state, turn):
        _read(state, turn.id, bare(turn.text))
    elif state.rewrite is not None:
        state.change(turn.id, read="")
        state.unread = False  # the history is read with the turn's words
        _work(state, actions.RewriteHistory(turn.id, state.rewrite))
    elif turn.words.final and _is_void(state, turn):
        _abandon(state, turn)
    elif turn.words.whole and turn.text and _may_reply(turn):
        _reply(state, turn.id, turn.text)
    else:
        return _read_on(state, turn)
    return True


def _read_opening(state: ConversationState) -> bool:
    """Have the model read the history before the next turn, so that only the turn's words are left
    to be read."""
    if not (state.unread and state.settings.thinks):
        return False
    state.unread = False
    _work(state, actions.ReadOpening(state.numbered + 1, state.rewrite))
    return True


def _end_with_words(state: ConversationState, turn: Turn) -> bool:
    """Finish a turn whose final words are known, because the language model is not to reply.
    Returns False if the words are not final, or if a reply already runs."""
    if turn.words.final is None or turn.phase is not Phase.HEARING:
        return False
    finish(state, turn, "abandoned")
    return True


def _may_reply(turn: Turn) -> bool:
    return turn.request.made and (turn.words.final is not None or turn.guesses > 0)


def _expects_no_more(state: ConversationState, turn_id: int, words: str) -> bool:
    """Return whether a reply may begin while the user still speaks, because `words` are probably
    the whole turn."""
    turn = state.turn(turn_id)
    assert turn is not None, "it is not over"
    return _may_reply(turn) and policy_for(state, turn).expects(turn, words)


def _reads_to_judge(state: ConversationState, turn: Turn) -> bool:
    """Return whether the model must read the words only to judge whether the turn is over. If a
    reply may begin, this is not needed, because the reply also gives the end probability."""
    silent = turn.words.whole is not None and not turn.ended
    unread = policy_for(state, turn).unread(turn, bare(turn.text))
    return silent and unread and not _may_reply(turn)


def _is_void(state: ConversationState, turn: Turn) -> bool:
    """Return whether a turn has nothing to answer, or the user has gone on in another turn.

    If nobody has requested an answer to the turn, it waits until an answer to a later turn is
    requested.
    """
    later = _gone_on_in(state)
    waits = not turn.request.made and not any(other.request.made for other in later)
    goes_on = bool(later) and not turn.request.insisted and not waits
    return not turn.text or goes_on


def _gone_on_in(state: ConversationState) -> list[Turn]:
    """Return the turns after the first one in which the user has gone on."""
    return [turn for turn in state.turns[1:] if turn.asks and turn.outcome != "abandoned"]


def _abandon(state: ConversationState, turn: Turn) -> None:
    """End a turn without an answer, and carry its words over to the next. If the model has read
    them, it must first forget them."""
    if turn.read or turn.reply:
        state.change(turn.id, reply=None)
        _read(state, turn.id, "")
        return
    if (later := _gone_on_in(state)) and not turn.request.insisted:
        state.change(later[0].id, carried=turn.text)
        judge_end(state, later[0].id)
    finish(state, turn, "abandoned")


def _read_on(state: ConversationState, turn: Turn) -> bool:
    """Have the model read what the user has said by now. Returns False if there is nothing new."""
    text = turn.text
    if not turn.words.whole and policy_for(state, turn).asks_model:
        text = bare(turn.hypothesis)
    if text == turn.read or not state.abilities.prefills:
        return False
    _read(state, turn.id, text)
    return True


def _read(state: ConversationState, turn_id: int, text: str) -> None:
    state.change(turn_id, read=text)
    _work(state, actions.ReadWords(turn_id, text, state.options(turn_id)))


def _reply(state: ConversationState, turn_id: int, text: str, *, ahead: bool = False) -> None:
    turn = state.turn(turn_id)
    assert turn is not None, "it is not over"
    # A doubted reply got no further than a step, so it is no use as a draft.
    revises = turn.reply is not None and not turn.reply.doubted
    left = turn.guesses - 1 if turn.words.final is None else turn.guesses
    reply = Attempt(text, ahead)
    state.change(turn_id, phase=Phase.GUESSING, reply=reply, guesses=left)
    state.last_answered = turn_id
    options, spoken = state.options(turn_id), turn.language.code
    _work(
        state,
        actions.StartReply(turn_id, text, options, revises, turn.returned, spoken, turn.announces),
    )
    if turn.announces and not state.abilities.full_duplex:
        state.ask(actions.HoldMicrophone())
    if turn.words.final:
        commit(state, turn_id)


def _work(state: ConversationState, work: actions.ModelWork) -> None:
    state.model = work
    state.ask(work)
