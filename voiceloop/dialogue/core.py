"""The core of a dialogue: from what every stage reports to what every stage is to do.

`Core.receive` is all of it. It waits for nothing and reads no clock, runs no engine and no thread;
the same inputs at the same moments give the same actions, on any machine. One place decides here,
and many places act. docs/architecture.md has the table of what a turn can be and become.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from voiceloop.asr.turns import SilenceLasts, SpeechPaused, SpeechResumed, SpeechStarted, TurnEnded
from voiceloop.audio.frames import SPEECH_RATE
from voiceloop.calibration.probability import bare
from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.bargein import Verdict
from voiceloop.dialogue.endpoint import needs_words
from voiceloop.dialogue.policy import Ending, cuts_off, resumes, sound_of, verdict
from voiceloop.dialogue.state import (
    Attempt,
    Contest,
    Options,
    Phase,
    Played,
    Request,
    Returned,
    Settings,
    Silence,
    Sound,
    Standing,
    State,
    Turn,
    Words,
)
from voiceloop.languages import AUTO, Language, language
from voiceloop.types import (
    Calibration,
    FloorChange,
    Notice,
    Outcome,
    Transcript,
    TurnHeard,
    Word,
)


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a session can do, and what it leaves out."""

    prefills: bool = True
    """The language model reads the user's words while they speak."""
    recognises: bool = True
    """There are words before the turn has ended."""
    guesses: int = 6
    """Replies to a turn that may be begun before its end."""
    full_duplex: bool = True
    """It hears while a reply sounds."""
    ear_ms: int | None = None
    """Silence after which the sound of a voice can be judged; None: it cannot."""


class Core:
    """One conversation."""

    def __init__(
        self,
        settings: Settings,
        abilities: Abilities,
        calibrations: Mapping[str, Calibration | None],
    ) -> None:
        """`calibrations` say what the language model's probabilities mean, by language."""
        self.settings = settings
        self.state = State(unread=abilities.prefills)
        self._abilities = abilities
        self._calibrations = calibrations
        self._model: actions.ModelWork | None = None
        """What the language model does; it does one thing after the other."""
        self._rewrite: object | None = None
        """Another history, which the model is to see before it reads anything else."""
        self._ear: actions.JudgeSound | None = None
        """The silence whose sound is being judged."""
        self._frame = 0
        """Index of the sample after the last that was heard."""
        self._now = 0.0
        self._actions: list[actions.Action] = []

    def receive(self, told: inputs.Input, now: float) -> list[actions.Action]:
        """What is to be done, in order, now that `told` has come at `now`."""
        self._now, self._actions = now, []
        if isinstance(told, Played):
            self.state = replace(self.state, played=told)
            return []  # nothing follows from it alone
        if isinstance(told, inputs.Settled):
            self.state = replace(self.state, settled=True)
        elif isinstance(told, inputs.FromUser):
            self._from_user(told)
        elif isinstance(told, inputs.FromModel):
            self._from_model(told)
        elif isinstance(told, inputs.FromReply):
            self._from_reply(told)
        else:
            self._from_client(told)
        self._end_in_silence()
        while self._step():
            pass
        return self._actions

    @property
    def contested(self) -> bool:
        """It depends on what has been played of a reply what becomes of it."""
        contests = (turn.contest for turn in self.state.turns)
        return any(contest and not contest.over for contest in contests)

    def turn(self, turn_id: int | None) -> Turn | None:
        """A turn that is not over, by its id."""
        return next((turn for turn in self.state.turns if turn.id == turn_id), None)

    # ---- what is reported

    def _from_user(self, told: inputs.FromUser) -> None:
        concerned = self.state.listening
        match told:
            case inputs.Detected(SpeechStarted() as event):
                self._begin(event, told.at)
                return
            case inputs.Detected(SilenceLasts() as silence):
                self.state = replace(self.state, silence=silence)
                return
            case inputs.Detected():
                self.state = replace(self.state, silence=None)
                self._go_on(told)
            case inputs.Frame():
                self._frame = told.end
            case inputs.Recognised():
                concerned = told.turn
                self._understand(told)
            case inputs.LanguageDetected():
                self._detect(told)
                return
            case inputs.SoundJudged():
                self._ear = None
                self._change(told.turn, sound=Sound(told.since, told.probability))
                self._judge_end(told.turn)
                return
        self._judge_guess(concerned)
        self._weigh(concerned)
        self._judge_end(concerned)

    def _from_model(self, told: inputs.FromModel) -> None:
        if isinstance(told, inputs.Rewritten | inputs.OpeningRead):
            self._model = None
            if self._rewrite is told.rewritten:  # and no other has been asked for meanwhile
                self._rewrite = None
            return
        turn = self.turn(told.turn)
        if turn is None or turn.phase is Phase.STOPPING:
            return
        if isinstance(self._model, actions.StartReply):  # its first words are there
            self._learn_from_reply(turn, told)
            return
        self._model = None
        self._learn(turn, told)
        # While it was read, results may have come for a call of an earlier turn.
        comes_next = self._rewrite is None and self.state.turns[0].id == turn.id
        if comes_next and self._expects(turn.id, told.text):
            self._reply(turn.id, turn.hypothesis, ahead=True)

    def _from_reply(self, told: inputs.FromReply) -> None:
        turn, over = self.turn(told.turn), isinstance(told, inputs.Failed | inputs.Stopped)
        if turn is None or (turn.phase is Phase.STOPPING and not over):
            return  # the turn is over, or will be once all of its work has stopped
        if not isinstance(self._model, actions.ReadOpening | None) and self._model.turn == turn.id:
            goes_on = isinstance(told, inputs.Sounding | inputs.Called)
            self._model = self._model if goes_on else None
        match told:
            case inputs.Sounding() if turn.phase is Phase.COMMITTED:
                self._change(turn.id, phase=Phase.SPEAKING)
            case inputs.Sounding():
                pass
            case inputs.Called():
                self._actions += [
                    actions.CallTool(turn.id, one) for one in told.calls if not one.client
                ]
            case inputs.Replied(dropped=True):
                self._change(turn.id, phase=Phase.HEARING, read="")
            case inputs.Replied():
                self._finish(turn, "done")
            case inputs.Failed():
                self._finish(turn, "failed")
            case inputs.Stopped():
                self._finish(turn, turn.outcome or "interrupted")

    def _from_client(self, told: inputs.FromClient) -> None:
        match told:
            case inputs.Write():
                number = self.state.numbered + 1
                self.state = replace(self.state, numbered=number)
                words = (Word(told.text, 0.0, 0.0, 1.0),)
                self._begin_unheard(number, words, told.options)
            case inputs.BringResults():
                number = told.returned[0][0].turn
                self._begin_unheard(number, (), told.options, told.returned)
            case inputs.Rang():
                self._ring(told.text)
            case inputs.Respond():
                self._respond(told.options)
            case inputs.Cancel():
                self._cancel(told.number)
            case inputs.Rewrite():
                self._rewrite = told.rewrite
                self.state = replace(self.state, unread=self._abilities.prefills)
                if isinstance(self._model, actions.ReadOpening):
                    self._do(actions.LeaveOpening())
            case inputs.Forget():
                self._forget()
            case inputs.Change():
                self._conduct(told)

    # ---- the user

    def _begin(self, event: SpeechStarted, at: float) -> None:
        """A turn of the user begins, perhaps into a reply; they have spoken since `at`."""
        rival = next((turn for turn in self.state.turns if turn.committed), None)
        spoken, number = self.settings.language, self.state.numbered + 1
        turn = self._add(
            number,
            spoken,
            detects=spoken.code == AUTO,
            guesses=self._abilities.guesses,
            request=Request(self.settings.answers),
            resumes=resumes(at, self.state.fell_silent),
        )
        self.state = replace(self.state, listening=turn.id, numbered=number)
        self._do(actions.Begin(turn.id, number, event))
        if rival is not None:
            self._contest(turn, rival)
        self._do(actions.Show(TurnHeard(number, event.start, over=False)))

    def _go_on(self, told: inputs.Detected) -> None:
        """The user pauses, goes on, or has ended."""
        event, turn = told.event, self.turn(self.state.listening)
        if turn is None:  # it has failed meanwhile
            if isinstance(event, TurnEnded):
                self.state = replace(self.state, listening=None, ending=False)
            return
        self._change(turn.id, words=told.words)
        match event:
            case SpeechPaused(speech_end=end):
                self._change(turn.id, silence=Silence(end, told.at))
            case SpeechResumed():
                self._change(turn.id, silence=None)
                if turn.dismissed:
                    self._listen_again(turn, event)
            case TurnEnded():
                self._end(turn, event, told)
            case SpeechStarted() | SilenceLasts():
                raise AssertionError("it begins once, and a silence tells nothing new")

    def _listen_again(self, turn: Turn, event: SpeechResumed) -> None:
        """What was nothing to listen to goes on, and may be something."""
        assert turn.contest is not None, "it was dismissed"
        self._conclude(turn.id, turn.contest, Standing.OVER)
        if rival := self.turn(turn.contest.rival):
            self._contest(turn, rival)
        self._announce(turn, event.speech_start)

    def _announce(self, turn: Turn, sample: int) -> None:
        """Whoever was told that there was nothing to listen to hears of the turn again."""
        self._do(actions.Show(TurnHeard(turn.number, sample, over=False)))

    def _end(self, turn: Turn, event: TurnEnded, told: inputs.Detected) -> None:
        """The user has finished."""
        since = turn.silence.since if turn.silence else event.speech_end
        self._change(turn.id, ended=True, silence=Silence(since, told.at))
        if not turn.dismissed:
            self._do(actions.Show(TurnHeard(turn.number, event.sample, over=True)))
        if replace(turn, words=told.words).text and turn.uncontested:
            self.state = replace(self.state, fell_silent=told.at)
        if told.words.final and not turn.words.final:
            self._do(actions.Show(told.words.final))
        self.state = replace(self.state, listening=None, ending=False)
        if not self._abilities.full_duplex:
            self._do(actions.HoldMicrophone())

    def _understand(self, told: inputs.Recognised) -> None:
        """A decode tells what the user has said."""
        turn = self.turn(told.turn)
        if turn is None:
            return
        self._change(turn.id, words=told.words)
        if told.words.newest:
            self._do(actions.Show(told.words.newest))
        if told.sure and turn.uncontested:
            self._change(turn.id, detects=False)
            if self.settings.language.code == AUTO:  # nobody has chosen one meanwhile
                self.settings = replace(self.settings, language=turn.language)

    def _detect(self, told: inputs.LanguageDetected) -> None:
        turn = self.turn(told.turn)
        if turn and told.code != turn.language.code:
            self._change(turn.id, language=language(told.code), chance=None)

    # ---- guesses: a reply that was begun before the user's end

    def _judge_guess(self, turn_id: int | None) -> None:
        """A guess is right, still possible, or wrong."""
        turn = self.turn(turn_id)
        if turn is None or turn.reply is None or turn.phase is not Phase.GUESSING:
            return
        if turn.words.whole:
            text = turn.text
        else:  # only a guess that was begun ahead may stand by what seems to have been said
            text = turn.hypothesis if turn.reply.ahead else ""
        if text != turn.reply.text:
            self._change(turn.id, phase=Phase.DROPPING)
            self._do(actions.Drop(turn.id))
        elif turn.words.final:
            self._commit(turn.id)

    def _commit(self, turn_id: int) -> None:
        """The one place where a reply is let out."""
        self._change(turn_id, phase=Phase.COMMITTED)
        self._do(actions.Commit(turn_id))

    # ---- the floor: a sound of the user's while a reply may be heard

    def _contest(self, turn: Turn, rival: Turn) -> None:
        """A reply that may be heard is paused, until it is decided what the sound is."""
        if not (self.settings.interruptible and rival.committed):
            return
        self._change(turn.id, contest=Contest(rival.id, self._now))
        self._change(rival.id, phase=Phase.CONTESTED)
        self._do(actions.Pause(rival.id))
        self._do(actions.Show(FloorChange(turn.number, rival.number, "paused")))

    def _weigh(self, turn_id: int | None) -> None:
        """Decide, if it can be decided by now, whether a turn interrupts the reply it began in."""
        turn = self.turn(turn_id)
        if turn is None or turn.contest is None or turn.contest.over:
            return
        contest, rival = turn.contest, self.turn(turn.contest.rival)
        found = verdict(turn, contest, self.state.played, self._now)
        if rival is not None and rival.phase is not Phase.STOPPING:
            self._decide(turn, contest, rival, found)
        elif contest.undecided:  # there is nothing to interrupt any more
            self._conclude(turn.id, contest, Standing.OVER)
        elif found is Verdict.INTERRUPT:  # nor is there, but what was a cough goes on to more
            self._conclude(turn.id, contest, Standing.OVER)
            self._announce(turn, self._frame)
        if (turn := self.turn(turn_id)) and turn.dismissed and turn.ended:
            self._stop(turn, "abandoned")

    def _decide(self, turn: Turn, contest: Contest, rival: Turn, found: Verdict) -> None:
        if found is Verdict.INTERRUPT:
            since = self._now if contest.dismissed else contest.since
            self._conclude(turn.id, contest, Standing.OVER)
            if contest.dismissed:
                self._announce(turn, self._frame)
            self._do(actions.Record(turn.id, "interrupt", since))
            self._interrupt(turn, rival, since)
        elif found is Verdict.RESUME and contest.undecided:
            self._conclude(turn.id, contest, Standing.DISMISSED)
            self._do(actions.Record(turn.id, "resume", contest.since))
            self._give_back(turn, rival)

    def _conclude(self, turn_id: int, contest: Contest, standing: Standing) -> None:
        self._change(turn_id, contest=replace(contest, standing=standing))

    def _give_back(self, turn: Turn, rival: Turn) -> None:
        """The reply goes on, unless the user makes another sound by now."""
        if rival.phase is not Phase.CONTESTED or self._contests(rival):
            return
        played = self.state.played
        sounded = played.turn == rival.id and played.first_sound is not None
        self._change(rival.id, phase=Phase.SPEAKING if sounded else Phase.COMMITTED)
        self._do(actions.Count(rival.id, "resumed"))
        self._do(actions.Resume(rival.id))
        self._do(actions.Show(FloorChange(turn.number, rival.number, "resumed")))

    def _let_go(self, turn: Turn) -> None:
        """A turn that is no more contests nothing."""
        if turn.contest is None or not turn.contest.undecided:
            return
        self._conclude(turn.id, turn.contest, Standing.OVER)
        if rival := self.turn(turn.contest.rival):
            self._give_back(turn, rival)

    def _contests(self, rival: Turn) -> list[tuple[int, Contest]]:
        """Those that the reply to `rival` waits for."""
        contests = [(turn.id, turn.contest) for turn in self.state.turns if turn.contest]
        return [(id, one) for id, one in contests if one.undecided and one.rival == rival.id]

    def _interrupt(self, turn: Turn, rival: Turn, since: float) -> None:
        """The user takes the floor for good."""
        if cuts_off(rival, self.state.played, since):
            self._change(rival.id, cut_off=True)
            self._do(actions.Count(rival.id, "false_cutoffs"))
        for later, contest in self._contests(rival):  # what follows an interruption belongs to it
            self._conclude(later, contest, Standing.OVER)
        self._stop(rival, "interrupted", audible=True)
        self._do(actions.Show(FloorChange(turn.number, rival.number, "interrupted")))

    # ---- the end of a turn: how long a silence ends it

    def _judge_end(self, turn_id: int | None, asked_at: float | None = None) -> None:
        """Find how long a silence ends the turn, as far as that is known; the language model was
        asked for that at `asked_at`."""
        turn = self.turn(turn_id)
        if turn is None:
            return
        ending = self._ending(turn)
        silence_ms = ending.silence_ms(turn)
        self._change(turn.id, hangover_ms=silence_ms)
        if turn.hangover_ms is None and silence_ms is not None and ending.asks_model:
            self._note_judgement(turn, self._now if asked_at is None else asked_at)
        self._ask_ear(turn, ending)

    def _note_judgement(self, turn: Turn, since: float) -> None:
        if turn.chance is None or turn.chance.probability is None or not bare(turn.text):
            return
        facts: dict[str, float | str] = {
            "probability": turn.chance.probability,
            "text": bare(turn.text),
        }
        if (sound := sound_of(turn)) is not None:
            facts["sound"] = sound
        self._do(actions.Record(turn.id, "end of turn?", since, facts))

    def _end_in_silence(self) -> None:
        """End the turn that is listened to, if there has been enough silence."""
        silence = self.state.silence
        if silence is not None and silence.reaches(self._hangover_ms()):
            self.state = replace(self.state, silence=None, ending=True)
            self._do(actions.EndTurn())

    def _hangover_ms(self) -> int:
        """The silence that ends the turn that is listened to.

        Nothing can be answered before the words are known and judged, so there is no hurry until
        then: a recogniser that is slow cuts nobody off.
        """
        policy, turn = self.settings.policy, self.turn(self.state.listening)
        if turn and turn.hangover_ms is not None:
            return turn.hangover_ms
        waits = turn and not turn.dismissed and needs_words(policy) and self._abilities.recognises
        return max(policy.hangover_ms, policy.incomplete_ms) if waits else policy.hangover_ms

    def _ask_ear(self, turn: Turn, ending: Ending) -> None:
        """Have a silence judged by the sound of the voice before it, once there is enough of it."""
        least_ms, silence = self._abilities.ear_ms, turn.silence
        if self._ear or least_ms is None or silence is None or turn.id != self.state.listening:
            return
        silent_ms = (self._frame - silence.since) * 1000 / SPEECH_RATE
        if ending.unheard(turn) and not turn.dismissed and silent_ms >= least_ms:
            self._ear = actions.JudgeSound(turn.id, silence.since)
            self._do(self._ear)

    def _ending(self, turn: Turn) -> Ending:
        """How the end of a turn is told."""
        return Ending(
            self.settings.policy,
            self._calibrations.get(turn.language.code),
            self._abilities.prefills and self.settings.thinks,
            self._abilities.ear_ms is not None,
        )

    # ---- what the language model thinks of the end

    def _learn(self, turn: Turn, told: inputs.Read) -> None:
        """It has read what may be all that the user says."""
        ending = self._ending(turn)
        if told.text and ending.asks_model:
            chance = ending.chance(told.text, told.probability, told.exchanges)
            self._change(turn.id, chance=chance)
            self._judge_end(turn.id, told.begun)

    def _learn_from_reply(self, turn: Turn, told: inputs.Read) -> None:
        """It has read what it replies to, and begun."""
        words, ending = bare(told.text), self._ending(turn)
        if not turn.ended and ending.unread(turn, words):
            self._learn(turn, told)
        known = self.turn(turn.id)
        assert known is not None and known.reply is not None, "it is being replied to"
        if ending.doubts(known, words):
            self._change(turn.id, reply=replace(known.reply, doubted=True))
            # Should they not go on after all, the second half of the silence is time enough.
            waited_s = 0.0 if turn.silence is None else self._now - turn.silence.at
            half_s = self.settings.policy.incomplete_ms / 2000
            self._do(actions.Hesitate(turn.id, max(0.0, half_s - waited_s)))

    def _expects(self, turn_id: int, words: str) -> bool:
        """The user, who still speaks, is likely to have said all with what was read."""
        turn = self.turn(turn_id)
        assert turn is not None, "it is not over"
        return self._may_reply(turn) and self._ending(turn).expects(turn, words)

    # ---- what the language model does next

    def _step(self) -> bool:
        """Give the model its next work, for the first turn that is not over; False where there is
        none, or where something may come first."""
        if self._model or self.state.ending or not self.state.settled:
            return False
        if not self.state.turns:
            return self._read_opening()
        turn = self.state.turns[0]
        if turn.phase is Phase.STOPPING or turn.dismissed:
            return False
        if not self.settings.thinks:
            return self._end_with_words(turn)
        if turn.returned or turn.announces:
            self._reply(turn.id, "")
        elif self._reads_to_judge(turn):
            self._read(turn.id, bare(turn.text))
        elif self._rewrite is not None:
            self._change(turn.id, read="")
            self.state = replace(self.state, unread=False)  # it reads on with the turn's words
            self._work(actions.RewriteHistory(turn.id, self._rewrite))
        elif turn.words.final and self._is_void(turn):
            self._abandon(turn)
        elif turn.words.whole and turn.text and self._may_reply(turn):
            self._reply(turn.id, turn.text)
        else:
            return self._read_on(turn)
        return True

    def _read_opening(self) -> bool:
        """Read what stands before the next turn, so that its words alone are left to be read."""
        if not (self.state.unread and self.settings.thinks):
            return False
        self.state = replace(self.state, unread=False)
        self._work(actions.ReadOpening(self.state.numbered + 1, self._rewrite))
        return True

    def _end_with_words(self, turn: Turn) -> bool:
        """A turn is over once its words are known: that is all that is wanted of it. A reply that
        is under way already goes on."""
        if turn.words.final is None or turn.phase is not Phase.HEARING:
            return False
        self._finish(turn, "abandoned")
        return True

    def _may_reply(self, turn: Turn) -> bool:
        return turn.request.made and (turn.words.final is not None or turn.guesses > 0)

    def _reads_to_judge(self, turn: Turn) -> bool:
        """A reply would tell as well how likely the turn is over; there will be none."""
        silent = turn.words.whole is not None and not turn.ended
        return (
            silent
            and not self._may_reply(turn)
            and self._ending(turn).unread(turn, bare(turn.text))
        )

    def _is_void(self, turn: Turn) -> bool:
        """There is nothing to answer, or the user has gone on in another turn.

        A turn that nobody has asked to be answered waits for that until a later one is.
        """
        later = self._gone_on_in()
        waits = not turn.request.made and not any(other.request.made for other in later)
        goes_on = bool(later) and not turn.request.insisted and not waits
        return not turn.text or goes_on

    def _gone_on_in(self) -> list[Turn]:
        """Turns in which the user has gone on after the first one."""
        later = self.state.turns[1:]
        return [other for other in later if other.asks and other.outcome != "abandoned"]

    def _abandon(self, turn: Turn) -> None:
        """Nothing answers it: once the model has none of its words, they belong to the next."""
        if turn.read or turn.reply:
            self._change(turn.id, reply=None)
            self._read(turn.id, "")
            return
        if (later := self._gone_on_in()) and not turn.request.insisted:
            self._change(later[0].id, carried=turn.text)
            self._judge_end(later[0].id)
        self._finish(turn, "abandoned")

    def _read_on(self, turn: Turn) -> bool:
        """Read what the user has said by now."""
        text = turn.text
        if not turn.words.whole and self._ending(turn).asks_model:
            text = bare(turn.hypothesis)
        if text == turn.read or not self._abilities.prefills:
            return False
        self._read(turn.id, text)
        return True

    def _read(self, turn_id: int, text: str) -> None:
        self._change(turn_id, read=text)
        self._work(actions.ReadWords(turn_id, text, self._options(turn_id)))

    def _reply(self, turn_id: int, text: str, *, ahead: bool = False) -> None:
        turn = self.turn(turn_id)
        assert turn is not None, "it is not over"
        # One that was doubted got no further than a step: it would draft nothing.
        revises = turn.reply is not None and not turn.reply.doubted
        guesses = turn.guesses - (turn.words.final is None)
        reply = Attempt(text, ahead)
        self._change(turn_id, phase=Phase.GUESSING, reply=reply, guesses=guesses)
        self.state = replace(self.state, last_answered=turn_id)
        options = self._options(turn_id)
        spoken = turn.language.code
        self._work(
            actions.StartReply(
                turn_id, text, options, revises, turn.returned, spoken, turn.announces
            )
        )
        if turn.announces and not self._abilities.full_duplex:
            self._do(actions.HoldMicrophone())
        if turn.words.final:
            self._commit(turn_id)

    def _options(self, turn_id: int) -> Options:
        """How the reply to a turn is to be."""
        turn = self.turn(turn_id)
        assert turn is not None, "it is not over"
        return turn.request.options or self.settings.reply

    def _work(self, work: actions.ModelWork) -> None:
        self._model = work
        self._do(work)

    # ---- what clients ask for

    def _begin_unheard(
        self,
        number: int,
        words: tuple[Word, ...],
        options: Options | None,
        returned: Sequence[Returned] = (),
    ) -> None:
        """A turn in which nobody spoke."""
        final = Transcript(number, 1, words, final=True)
        turn = self._add(
            number,
            self.settings.language,
            ended=True,
            words=Words(final),
            request=Request(options=options),
            returned=returned,
        )
        self.state = replace(self.state, last_answered=turn.id)
        self._do(actions.Begin(turn.id, number, None))
        self._do(actions.Answering(number))

    def _ring(self, text: str) -> None:
        """Tell the user that a timer is over; where another assistant talks to them, show it."""
        if not self.settings.reply.skills:
            self._do(actions.Show(Notice(text)))
            return
        number = self.state.numbered + 1
        self.state = replace(self.state, numbered=number)
        nothing = Words(Transcript(number, 1, (), final=True))
        turn = self._add(number, self.settings.language, ended=True, words=nothing, announces=text)
        self._do(actions.Begin(turn.id, number, None))

    def _respond(self, options: Options | None) -> None:
        """Answer the newest turn that is over for the user, if nothing has answered it."""
        over = [turn for turn in self.state.turns if turn.ended and turn.outcome is None]
        if not over or over[-1].request.made:
            return
        turn = over[-1]
        self._change(turn.id, request=Request(insisted=True, options=options))
        self.state = replace(self.state, last_answered=turn.id)
        self._do(actions.Answering(turn.number))

    def _cancel(self, number: int | None) -> None:
        turn = self.turn(self.state.last_answered)
        if turn is None or number not in (None, turn.number):
            return
        if turn.words.final:  # else it is only a guess, which is not there yet
            self._stop(turn, "interrupted", audible=True)
            self._do(actions.Answering(turn.number))

    def _conduct(self, told: inputs.Change) -> None:
        asked = {field.name: getattr(told, field.name) for field in fields(told)}
        changed = {name: value for name, value in asked.items() if value is not None}
        self.settings = replace(self.settings, **changed)

    def _forget(self) -> None:
        turn = self.turn(self.state.listening)
        self.state = replace(self.state, listening=None, silence=None, ending=False)
        if turn is None:
            return
        self._stop(turn, "abandoned")

    # ---- turns as they are kept

    def _add(self, number: int, language: Language, **known: Any) -> Turn:
        """The newest turn. One in which the user says nothing does not wait behind turns that
        nobody has asked to be answered."""
        turn, turns = Turn(self.state.begun + 1, number, language, **known), self.state.turns
        waiting = [at for at, other in enumerate(turns) if not other.request.made]
        at = waiting[0] if waiting and not turn.asks else len(turns)
        turns = (*turns[:at], turn, *turns[at:])
        # After the turn the model will have seen all that was before it.
        self.state = replace(self.state, turns=turns, begun=turn.id, unread=False)
        return turn

    def _change(self, turn_id: int, **changed: Any) -> None:
        """The turn is another from now on; one that is over stays as it was."""
        turns = tuple(
            replace(turn, **changed) if turn.id == turn_id else turn for turn in self.state.turns
        )
        self.state = replace(self.state, turns=turns)

    def _stop(self, turn: Turn, outcome: Outcome, *, audible: bool = False) -> None:
        """Call off all work of a turn; `Stopped` tells that nothing of it runs any more."""
        if turn.phase is not Phase.STOPPING:
            self._let_go(turn)
            self._change(turn.id, phase=Phase.STOPPING, outcome=outcome)
            self._do(actions.Stop(turn.id, audible))

    def _finish(self, turn: Turn, outcome: Outcome) -> None:
        """A turn is over."""
        self._let_go(turn)
        turns = tuple(other for other in self.state.turns if other.id != turn.id)
        self.state = replace(self.state, turns=turns)
        if self._ear and self._ear.turn == turn.id:
            self._ear = None
        outcome = "abandoned" if turn.dismissed else outcome
        self.state = replace(self.state, settled=False)
        self._do(actions.Finish(turn.id, outcome, turn.cut_off))
        if not self._abilities.full_duplex:
            self._do(actions.ReleaseMicrophone())

    def _do(self, action: actions.Action) -> None:
        self._actions.append(action)
