"""Decides who may be heard. A sound of the user pauses a reply; then the reply goes on or is ended.

The reply pauses at once, and a rule decides what becomes of it. After a cough, a "yes, yes" or an
echo of the reply itself, the reply goes on. Words, or a voice that goes on longer than any
backchannel, end the reply. A rule has no state, audio or clock, and a package may bring one of its
own (`voiceloop.interruption` entry points). This module also stops and finishes turns, because a
turn that is over gives the floor back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import Enum, auto

from voiceloop.asr.transcript import normalise
from voiceloop.dialogue import actions
from voiceloop.dialogue.consent import note_end
from voiceloop.dialogue.conversationstate import ConversationState
from voiceloop.dialogue.state import Contest, Phase, ReplyProgress, Standing, Turn
from voiceloop.languages import Language
from voiceloop.types import FloorChange, Outcome, TurnHeard

DECIDE_MS = 480.0
"""Maximum time in milliseconds from the beginning of the sound to the decision, while the user's
voice goes on. It is half a second minus the frame in which the sound is noticed."""
WORDLESS_MS = 2000.0
"""Maximum time in milliseconds from the beginning of the sound to the decision, while the user's
voice goes on and the recogniser has no likely words of it yet. A slow recogniser has none of "yeah,
right" after `DECIDE_MS`. The reply is silent meanwhile, so waiting costs the user nothing."""
LIKELY = 0.5
"""Minimum mean probability of words that end a reply while the user's voice goes on. For a hum that
goes on, Whisper may have less likely words, and none once all of the hum is decoded."""
CLEAR = 2
"""A sound with at least this many words is an interruption at once. Backchannels are not
counted."""
ECHO = 2
"""A sound during the reply may be an echo if it has at least this many words and the reply contains
them in a row. Fewer words may be equal by chance."""
WHOLE_ECHO = 3
"""A whole turn is an echo if it has at least this many words and the reply contains them in a row.
A user who answers at once may repeat two words of the reply."""
MISHEARD = 6
"""A turn with at least this many words may be an echo even if some words were misheard."""
ALIKE = 0.8
"""A turn of `MISHEARD` words or more is an echo if an equally long part of the reply contains at
least this share of the turn's words, in the same order."""


class Verdict(Enum):
    """What becomes of a paused reply."""

    WAIT = auto()
    """It stays silent, and the rule is asked again when more is known. Only the rule limits how
    long."""
    RESUME = auto()
    """It goes on. If the user's turn ends with that, its words are dropped and never answered."""
    INTERRUPT = auto()
    """It ends, and what the user says is answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interjection:
    """A sound of the user during a reply, which is paused since."""

    words: Sequence[str]
    """The words so far as the recogniser writes them, with case and punctuation: `sea?`. They may
    change until `final`."""
    language: Language
    speaking: bool
    """Whether the user's voice goes on."""
    final: bool
    """Whether all that was said before the present silence has been decoded. If the user goes on,
    the rule is asked again."""
    waited_ms: float
    """Milliseconds since the reply was paused."""
    spoken: Sequence[str]
    """The words of the reply that sounded before it paused."""
    likely: bool = True
    """Whether the recogniser is sure of `words`. Of others, more may be known when the voice has
    ended."""


class InterruptionRule:
    """A rule for what becomes of a paused reply. This one is `words`."""

    def judge(self, sound: Interjection) -> Verdict:
        """Judge whether `sound` interrupts the reply. This is asked whenever more is known. An
        interruption in a silence of less than `QUIET_S` is held back, since the word may go on."""
        said = _normal(sound.words)
        meant = [word for word in said if not sound.language.is_backchannel(word)]
        if _echo(said, _normal(sound.spoken), ECHO):
            meant = []
        if len(meant) >= CLEAR and (sound.likely or not sound.speaking):
            return Verdict.INTERRUPT
        if sound.speaking:
            if sound.waited_ms < (DECIDE_MS if said and sound.likely else WORDLESS_MS):
                return Verdict.WAIT
            return Verdict.RESUME if said and not meant else Verdict.INTERRUPT
        if not sound.final:
            return Verdict.WAIT
        articles = sound.language.articles
        return Verdict.RESUME if articles.issuperset(meant) else Verdict.INTERRUPT


INTERRUPTION_RULES = {"words": InterruptionRule()}
"""The rules by their names in `turns.interruption`. `load_rules` in `turn/resources` adds the
configured one of a package."""


def comes_back(words: Sequence[str], spoken: Sequence[str]) -> bool:
    """Return whether a turn is only an echo, because the microphone heard the loudspeaker. `words`
    are all words of the turn. `spoken` are the reply's words that sounded at that time."""
    said, reply = _normal(words), _normal(spoken)
    if _echo(said, reply, WHOLE_ECHO):
        return True
    n = len(said)
    parts = [reply[at : at + n] for at in range(max(1, len(reply) - n + 1))]
    return n >= MISHEARD and any(_alike(said, part) >= ALIKE * n for part in parts)


def _echo(said: Sequence[str], spoken: Sequence[str], least: int) -> bool:
    """Return whether `said` has at least `least` words, and `spoken` contains them in a row."""
    n = len(said)
    return n >= least and any(
        list(spoken[at : at + n]) == list(said) for at in range(len(spoken) - n + 1)
    )


def _alike(said: Sequence[str], spoken: Sequence[str]) -> int:
    """Return how many words `said` and `spoken` have in common, in the same order."""
    blocks = SequenceMatcher(None, said, spoken, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks)


def _normal(words: Sequence[str]) -> list[str]:
    """Return the normalised words, without those that have neither letters nor digits."""
    return [word for word in map(normalise, words) if word]


QUIET_S = 0.12
"""Seconds of silence after which the user's last word counts as over. "Uh-huh" has a shorter
silence in its middle, and its first half alone may be recognised as a word."""
CUT_OFF_S = 0.5
"""If the user interrupts within this many seconds of the reply's first sound, they had not
finished. Their turn was cut off."""


def contest(state: ConversationState, turn: Turn, rival: Turn) -> None:
    """Pause the reply to `rival`, if it may be heard, because of a sound of the user in `turn`. The
    reply stays paused until it is decided what the sound is."""
    if not (state.settings.interruptible and rival.committed):
        return
    state.change(turn.id, contest=Contest(rival.id, state.now))
    state.change(rival.id, phase=Phase.CONTESTED)
    state.ask(actions.PauseReply(rival.id))
    state.ask(actions.Show(FloorChange(turn.number, rival.number, "paused")))


def contest_again(state: ConversationState, turn: Turn, speech_start: int) -> None:
    """Contest the reply once more, because a sound that was judged to be no interruption goes
    on."""
    assert turn.contest is not None, "it was dismissed"
    _conclude(state, turn.id, turn.contest, Standing.OVER)
    if rival := state.turn(turn.contest.rival):
        contest(state, turn, rival)
    _show_again(state, turn, speech_start)


def weigh(state: ConversationState, turn_id: int | None) -> None:
    """Decide, if that is possible by now, whether a turn interrupts the reply during which it
    began."""
    turn = state.turn(turn_id)
    if turn is None or turn.contest is None or turn.contest.over:
        return
    contested, rival = turn.contest, state.turn(turn.contest.rival)
    found = _verdict(turn, contested, state)
    if rival is not None and rival.phase is not Phase.STOPPING:
        _decide(state, turn, contested, rival, found)
    elif contested.undecided:  # the reply is over, so nothing can be interrupted
        _conclude(state, turn.id, contested, Standing.OVER)
    elif found is Verdict.INTERRUPT:  # the reply is over, but the sound has proved to be speech
        _conclude(state, turn.id, contested, Standing.OVER)
        _show_again(state, turn, state.heard_to)
    if (turn := state.turn(turn_id)) and turn.dismissed and turn.ended:
        stop(state, turn, "abandoned")


def drop_echo(state: ConversationState, turn_id: int | None) -> None:
    """Stop a turn in which the microphone heard only the echo of the reply."""
    turn = state.turn(turn_id)
    if turn is None or not (turn.beside and turn.ended) or turn.words.whole is None:
        return
    if comes_back(turn.words.whole.text.split(), state.played.words):
        state.ask(actions.RecordDecision(turn.id, "echo", state.now))
        stop(state, turn, "abandoned")


def _verdict(turn: Turn, contested: Contest, state: ConversationState) -> Verdict:
    """Judge whether a turn interrupts the reply during which it began."""
    now, known = state.now, turn.words.whole or turn.words.newest
    speaking = turn.silence is None and not turn.ended
    waited_ms = (now - contested.since) * 1000
    words = known.committed + known.tentative if known else ()
    found = INTERRUPTION_RULES[state.settings.policy.interruption].judge(
        Interjection(
            words=[word.text for word in words],
            language=turn.language,
            speaking=speaking,
            final=turn.words.whole is not None,
            waited_ms=waited_ms,
            spoken=state.played.words,
            likely=sum(word.probability for word in words) >= LIKELY * len(words),
        )
    )
    silent_s = 0.0 if turn.silence is None else now - turn.silence.at
    # Of a word with a short silence in its middle, only the first half may have been decoded.
    unsure = turn.silence is not None and not turn.ended and silent_s < QUIET_S
    waits = found is Verdict.INTERRUPT and unsure and waited_ms < DECIDE_MS
    return Verdict.WAIT if waits else found


def _decide(
    state: ConversationState, turn: Turn, contested: Contest, rival: Turn, found: Verdict
) -> None:
    if found is Verdict.INTERRUPT:
        since = state.now if contested.dismissed else contested.since
        _conclude(state, turn.id, contested, Standing.OVER)
        if contested.dismissed:
            _show_again(state, turn, state.heard_to)
        state.ask(actions.RecordDecision(turn.id, "interrupt", since))
        _interrupt(state, turn, rival, since)
    elif found is Verdict.RESUME and contested.undecided:
        _conclude(state, turn.id, contested, Standing.DISMISSED)
        state.ask(actions.RecordDecision(turn.id, "resume", contested.since))
        _give_back(state, turn, rival)


def _interrupt(state: ConversationState, turn: Turn, rival: Turn, since: float) -> None:
    """Stop the reply to `rival`: the user takes the floor for good."""
    if _cuts_off(rival, state.played, since):
        state.change(rival.id, cut_off=True)
        state.ask(actions.Count(rival.id, "false_cutoffs"))
    for later, one in _contests(state, rival):  # the interruption decides them too
        _conclude(state, later, one, Standing.OVER)
    stop(state, rival, "interrupted", audible=True)
    state.ask(actions.Show(FloorChange(turn.number, rival.number, "interrupted")))


def _cuts_off(rival: Turn, played: ReplyProgress, since: float) -> bool:
    """Return whether the turn `rival` was cut off. It was if the user interrupts its reply, at time
    `since`, less than `CUT_OFF_S` after the first sound and before the first clause is over."""
    if played.turn != rival.id or played.first_sound is None or played.said_a_clause:
        return False
    return since - played.first_sound < CUT_OFF_S


def _give_back(state: ConversationState, turn: Turn, rival: Turn) -> None:
    """Let the reply go on, unless another sound of the user contests it."""
    if rival.phase is not Phase.CONTESTED or _contests(state, rival):
        return
    sounded = state.played.turn == rival.id and state.played.first_sound is not None
    state.change(rival.id, phase=Phase.SPEAKING if sounded else Phase.COMMITTED)
    state.ask(actions.Count(rival.id, "resumed"))
    state.ask(actions.ResumeReply(rival.id))
    state.ask(actions.Show(FloorChange(turn.number, rival.number, "resumed")))


def _contests(state: ConversationState, rival: Turn) -> list[tuple[int, Contest]]:
    """Return the undecided contests of the reply to `rival`, each with the id of its turn."""
    contests = [(turn.id, turn.contest) for turn in state.turns if turn.contest]
    return [(id, one) for id, one in contests if one.undecided and one.rival == rival.id]


def _conclude(
    state: ConversationState, turn_id: int, contested: Contest, standing: Standing
) -> None:
    state.change(turn_id, contest=replace(contested, standing=standing))


def _show_again(state: ConversationState, turn: Turn, sample: int) -> None:
    """Show once more that the user is heard, because the turn's sound had been judged to be no
    interruption."""
    state.ask(actions.Show(TurnHeard(turn.number, sample, over=False)))


# ---- a turn is over


def stop(state: ConversationState, turn: Turn, outcome: Outcome, *, audible: bool = False) -> None:
    """Stop all work of a turn. The report `Stopped` comes when all of it has ended."""
    if turn.phase is not Phase.STOPPING:
        _let_go(state, turn)
        state.change(turn.id, phase=Phase.STOPPING, outcome=outcome)
        state.ask(actions.Stop(turn.id, audible))


def finish(state: ConversationState, turn: Turn, outcome: Outcome) -> None:
    """Close a turn that is over, and remove it from the state."""
    _let_go(state, turn)
    note_end(state, turn.id, outcome)
    state.turns = tuple(other for other in state.turns if other.id != turn.id)
    if state.judging and state.judging.turn == turn.id:
        state.judging = None
    state.settled = False
    outcome = "abandoned" if turn.dismissed else outcome
    state.ask(actions.Finish(turn.id, outcome, turn.cut_off))
    if not state.abilities.full_duplex:
        state.ask(actions.ReleaseMicrophone())


def _let_go(state: ConversationState, turn: Turn) -> None:
    """End the contest of a turn that is over, and give the floor back."""
    if turn.contest is None or not turn.contest.undecided:
        return
    _conclude(state, turn.id, turn.contest, Standing.OVER)
    if rival := state.turn(turn.contest.rival):
        _give_back(state, turn, rival)
