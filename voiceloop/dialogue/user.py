"""Handles what the user does: they begin to speak, are recognised, fall silent, go on and
finish."""

from __future__ import annotations

from dataclasses import replace

from voiceloop.asr.turns import SilenceLasts, SpeechPaused, SpeechResumed, SpeechStarted, TurnEnded
from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.endpoint import judge_end, take_sound
from voiceloop.dialogue.floor import contest, contest_again, drop_echo, weigh
from voiceloop.dialogue.modelqueue import judge_guess
from voiceloop.dialogue.state import AnswerRequest, Silence, Turn
from voiceloop.languages import AUTO, language
from voiceloop.types import TurnHeard

ECHO_S = 0.25
"""Seconds after a reply in which a sound may still be the echo of the reply."""
RESUMED_S = 1.5
"""A user who goes on within this many seconds of falling silent cannot have listened to an answer.
They had only paused. They may pause again, even if their next words seem complete."""


def take(state: ConversationState, report: inputs.FromUser) -> None:
    """Apply a report of the microphone, the recogniser or the turn model to the state."""
    match report:
        case inputs.Detected(SpeechStarted() as event):
            _begin(state, event, report.at)
        case inputs.Detected(SilenceLasts() as silence):
            state.silence = silence
        case inputs.Detected():
            concerned, state.silence = state.listening, None
            _go_on(state, report)
            _judge(state, concerned)
        case inputs.Frame():
            state.heard_to = report.end
            _judge(state, state.listening)
        case inputs.Recognised():
            _understand(state, report)
            _judge(state, report.turn)
        case inputs.LanguageDetected():
            _take_language(state, report)
        case inputs.SoundJudged():
            take_sound(state, report)


def _judge(state: ConversationState, turn_id: int | None) -> None:
    """Judge a turn anew, after something has happened in it."""
    judge_guess(state, turn_id)
    weigh(state, turn_id)
    drop_echo(state, turn_id)
    judge_end(state, turn_id)


def _begin(state: ConversationState, event: SpeechStarted, at: float) -> None:
    """Begin a turn of the user, perhaps during a reply. `at` is when they began to speak, in
    seconds of the loop's clock."""
    rival = next((turn for turn in state.turns if turn.committed), None)
    spoken, paused = state.settings.language, state.fell_silent
    turn = state.add(
        state.next_number(),
        spoken,
        detects=spoken.code == AUTO,
        guesses=state.abilities.guesses,
        request=AnswerRequest(state.settings.answers),
        resumes=paused is not None and at - paused < RESUMED_S,
        beside=at < state.played.until + ECHO_S,
    )
    state.listening = turn.id
    state.ask(actions.Begin(turn.id, turn.number, event))
    if rival is not None:
        contest(state, turn, rival)
    state.ask(actions.Show(TurnHeard(turn.number, event.start, over=False)))


def _go_on(state: ConversationState, report: inputs.Detected) -> None:
    """Note that the user pauses, goes on, or has finished."""
    event, turn = report.event, state.turn(state.listening)
    if isinstance(event, TurnEnded):
        state.listening, state.ending = None, False
    if turn is None:  # it has failed meanwhile
        return
    state.change(turn.id, words=report.words)
    match event:
        case SpeechPaused(speech_end=end):
            state.change(turn.id, silence=Silence(end, report.at))
        case SpeechResumed():
            state.change(turn.id, silence=None)
            if turn.dismissed:
                contest_again(state, turn, event.speech_start)
        case TurnEnded():
            _end(state, turn, event, report)
        case SpeechStarted() | SilenceLasts():
            raise AssertionError("it begins once, and a silence tells nothing new")


def _end(state: ConversationState, turn: Turn, event: TurnEnded, report: inputs.Detected) -> None:
    """Note that the user has finished."""
    since = turn.silence.since if turn.silence else event.speech_end
    state.change(turn.id, ended=True, silence=Silence(since, report.at))
    if not turn.dismissed:
        state.ask(actions.Show(TurnHeard(turn.number, event.sample, over=True)))
    if turn.text and turn.uncontested:
        state.fell_silent = report.at
    if report.words.final and not turn.words.final:
        state.ask(actions.Show(report.words.final))
    if not state.abilities.full_duplex:
        state.ask(actions.HoldMicrophone())


def _understand(state: ConversationState, report: inputs.Recognised) -> None:
    """Take the words of a decode. If the decode is sure of the language, keep the language for
    later turns."""
    turn = state.turn(report.turn)
    if turn is None:
        return
    state.change(turn.id, words=report.words)
    if report.words.newest:
        state.ask(actions.Show(report.words.newest))
    if report.sure and turn.uncontested:
        state.change(turn.id, detects=False)
        if state.settings.language.code == AUTO:  # nobody has chosen one meanwhile
            state.settings = replace(state.settings, language=turn.language)


def _take_language(state: ConversationState, report: inputs.LanguageDetected) -> None:
    turn = state.turn(report.turn)
    if turn and report.code != turn.language.code:
        state.change(turn.id, language=language(report.code), end_probability=None)
