"""Session: the conversation loop, from a microphone's frames to a speaker's samples.

Each turn of the user is one task with one cancel scope. While the user talks, it recognises what
has been said so far and prefills the language model with it. Where those words may be all, and at
the first silence at the latest, the reply is begun on the guess that the user has finished; the
endpoint decision commits the reply, and a user who goes on makes it be dropped and begun again,
unseen. The only things that flow back are back-pressure, cancellation, and how much was heard.

The session knows no device and no model: microphone, speaker, engines and runners are given to it,
and all its waiting goes through anyio, so it runs the same on a virtual clock.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial

import anyio
from anyio.abc import TaskGroup

from voiceloop.asr.stream import StreamingTranscriber
from voiceloop.audio import SPEECH_RATE
from voiceloop.bargein import Verdict
from voiceloop.config import Config, TurnConfig
from voiceloop.devices import Microphone, Speaker
from voiceloop.endpoint import bare
from voiceloop.endpointing import Endpointing
from voiceloop.engines import Conversation, Engines, first
from voiceloop.errors import VoiceloopError
from voiceloop.floor import Floor, Turn
from voiceloop.hearing import Hearing
from voiceloop.languages import AUTO, language
from voiceloop.player import Player
from voiceloop.reply import EVERYTHING, Overlap, Reply, Returned, Stage
from voiceloop.tools import ToolResult, run_tool
from voiceloop.trace import Lane, Mark, Recorder
from voiceloop.turns import (
    Detector,
    SpeechPaused,
    SpeechResumed,
    SpeechStarted,
    TurnDetector,
    TurnEnded,
)
from voiceloop.types import (
    AudioFrame,
    Event,
    FloorChange,
    Notice,
    Outcome,
    ToolCall,
    Transcript,
    TurnHeard,
    Word,
)

logger = logging.getLogger(__name__)

SURE_OF_LANGUAGE = 0.8
"""Probability at which a turn tells the language of all that come: Whisper base took German and
Spanish for other languages at up to 0.64."""
MAX_GUESSES = 6
"""Replies begun before the end of a turn, where that costs nothing but time."""


class Session:
    """One conversation. `run` it once."""

    def __init__(
        self,
        engines: Engines,
        microphone: Microphone,
        speaker: Speaker,
        config: Config,
        show: Callable[[Event], None],
        *,
        full_duplex: bool = False,
        overlap: Overlap = EVERYTHING,
        detector: Detector | None = None,
        conversation: Conversation | None = None,
        foreign: Callable[[str], bool] = lambda tool: False,
        wall_clock: Callable[[], datetime] = datetime.now,
    ) -> None:
        """`full_duplex` goes on hearing while a reply sounds, so that it can be interrupted.

        `overlap` says what is left out, with the same models and the same endpoint decisions, to
        measure what it is worth. `detector` stands in for one with the configured settings, and
        `conversation` is one to be gone on with; whoever gives it closes it. A tool that is
        `foreign` is called by whoever is shown the call, and `answer_calls` brings its result.
        """
        self._engines = engines
        self._microphone = microphone
        self._config = config
        self._show = show
        self._full_duplex = full_duplex
        self._overlap = overlap
        self._wall_clock = wall_clock
        self._foreign = foreign
        self.answers = True
        """A turn is answered when it ends; otherwise `respond` asks for that."""
        self.interruptible = True
        """A sound of the user's pauses the reply, and may end it."""
        self.spoken = True
        """Replies sound; otherwise they are written alone."""
        self.voice: str | None = None
        """In which replies sound that are begun from now on; None: the synthesizer's own."""
        self.most_tokens: int | None = None
        """At most so many in replies that are begun from now on; None: what the model is set to."""
        self.language = language(config.asr.language)
        """What the user speaks, from the next turn on; `AUTO` until a turn of theirs tells."""
        self._player = Player(speaker, on_clause=show)
        self._own = conversation is None
        self._conversation = conversation or engines.llm.conversation()
        self._tokens_read = self._conversation.tokens_read
        self._rewritten: Callable[[], None] | None = None
        """Puts another history in place, before the next thing is read."""
        self._hearing = Hearing(
            engines.vad,
            detector or TurnDetector(config.turns),
            config.turns,
            engines.turn.window_s if engines.turn else 0.0,
        )
        self._endpointing = Endpointing(
            self._conversation,
            self._hearing,
            engines.llm,
            prefills=overlap.prefill,
            recognises=overlap.stages,
            ear=engines.turn,
        )
        guesses = config.turns.max_guesses
        usual = 0 if engines.llm.metered else MAX_GUESSES
        self._max_guesses = usual if guesses == "auto" else guesses
        self._floor = Floor(self._player)
        self._heard_turn: Turn | None = None
        """The turn that is being heard."""
        self._last_turn: Turn | None = None
        """The newest turn of all; turns run one after the other."""
        self._replying: Turn | None = None
        """The turn that was answered last."""
        self._turns = 0
        self._timers = 0
        self._called: Sequence[tuple[ToolCall, str | None]] = ()
        """The calls that the last reply ended with, and the results that there are."""
        self._called_after = 0
        """Tokens of the last reply: where it called a foreign tool, those before the rest of it."""
        self._stage: Stage | None = None
        self._tasks: TaskGroup | None = None

    async def run(self) -> None:
        """Converse until the microphone has finished and every turn is over."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            self._stage = Stage(
                self._engines,
                self._conversation,
                self._player,
                self._show,
                self._call_tool,
                self._overlap,
            )
            tasks.start_soon(self._player.run)
            async with aclosing(self._microphone.frames()) as frames:
                async for frame in frames:
                    self._hear(frame)
                    if self._microphone.finished and self._heard_turn is None:
                        break
            while self._last_turn is not None and not self._last_turn.over.is_set():
                await self._last_turn.over.wait()
            if self._timers:
                self._show(Notice(f"{self._timers} timer(s) end with this session"))
            tasks.cancel_scope.cancel()
        if self._own:
            self._conversation.close()

    # ---- what others than the user's voice ask for, while the session runs

    def listen(self, detector: Detector, policy: TurnConfig) -> None:
        """Find turns in another way from now on; a turn that is being heard is forgotten."""
        self._dismiss()
        self._hearing.listen(detector, policy)

    def forget(self) -> None:
        """The turn that is being heard has never been, and no other has what was heard so far."""
        self._dismiss()
        self._hearing.forget()

    def _dismiss(self) -> None:
        turn, self._heard_turn = self._heard_turn, None
        if turn is not None and not turn.over.is_set():
            turn.dismissed = True
            turn.scope.cancel()
            if self._last_turn is turn:  # and nothing was written meanwhile
                self._last_turn = turn.before

    def end_turn(self, ended: TurnEnded) -> bool:
        """The turn that is being heard is over; False where there is none."""
        if self._heard_turn is None:
            return False
        self._turn_event(ended, anyio.current_time())
        return True

    def write(self, text: str) -> int:
        """The user has written `text`: a turn of its own. Returns its number."""
        self._turns += 1
        turn = Turn(self._turns, Recorder(self._turns), None, self.language)
        turn.final = Transcript(turn.number, 1, (Word(text, 0.0, 0.0, 1.0),), final=True)
        return self._begin_unheard(turn)

    def answer_calls(self, returned: Sequence[Returned]) -> int:
        """Foreign tools have returned what one reply called them for: go on with its turn."""
        number = returned[0][0].turn
        given = {call.call_id: result for call, result in returned}
        if given.keys() <= {call.call_id for call, _ in self._called}:
            # Tools of ours that were called beside them have returned already.
            whole = [(call, given.get(call.call_id, result)) for call, result in self._called]
            returned = [(call, result) for call, result in whole if result is not None]
        turn = Turn(number, Recorder(number), None, self.language, returned=returned)
        turn.final = Transcript(turn.number, 1, (), final=True)
        return self._begin_unheard(turn)

    def respond(self) -> int | None:
        """Answer the newest turn that is over: its number, if it has not been answered."""
        turn = self._last_turn
        if turn is not None and turn is self._heard_turn:
            turn = turn.before
        if turn is None or turn.asked or turn.over.is_set():
            return None
        turn.asked = turn.insisted = True
        turn.wake()
        self._replying = turn
        return turn.number

    def cancel(self) -> int | None:
        """End the reply that is being thought or heard: the number of its turn, if there is one."""
        turn = self._replying
        if turn is None or turn.final is None or turn.over.is_set():
            return None  # a reply that is only a guess is not there yet
        turn.scope.cancel()  # first: a reply that is stopped would take itself for played
        self._player.stop()
        return turn.number

    def rewrite(self, rewritten: Callable[[], None]) -> None:
        """Before anything else is read, do to the conversation what `rewritten` does."""
        self._rewritten = rewritten

    def _begin_unheard(self, turn: Turn) -> int:
        now = anyio.current_time()
        turn.ended, turn.speaking = True, False
        for mark in (Mark.ENDPOINT, Mark.TRANSCRIPT_FINAL):  # nobody spoke: no SPEECH_END
            turn.recorder.mark(mark, now)
        self._replying = turn
        self._start(turn)
        return turn.number

    def _start(self, turn: Turn) -> None:
        assert self._tasks is not None, "the session runs"
        turn.before = previous = self._last_turn
        self._last_turn = turn
        self._tasks.start_soon(self._take_turn, turn, previous)

    # ---- hearing: everything here is synchronous, so no frame is ever late

    def _hear(self, frame: AudioFrame) -> None:
        now = anyio.current_time()
        if self._heard_turn is not None and self._heard_turn.transcriber is not None:
            self._heard_turn.transcriber.feed(frame)
        for event in self._hearing.feed(frame, now, self._hangover_ms):
            if isinstance(event, SpeechStarted):
                self._begin_turn(event)
            else:
                self._turn_event(event, now)
        if self._heard_turn is not None:
            self._heard_turn.wake()
            self._weigh(self._heard_turn)

    def _hangover_ms(self) -> int | None:
        return self._endpointing.silence_ms(self._heard_turn) if self._heard_turn else None

    def _begin_turn(self, event: SpeechStarted) -> None:
        previous = self._last_turn
        self._turns += 1
        recorder = Recorder(self._turns)
        recorder.mark(Mark.SPEECH_START, self._hearing.when(event.speech_start))
        transcriber = StreamingTranscriber(
            self._turns,
            event,
            self._hearing.recent,
            self._config.asr,
            self._engines.asr.max_window_s,
        )
        guesses = self._max_guesses if self._overlap.early_reply else 0
        spoken = self.language
        turn = Turn(self._turns, recorder, transcriber, spoken, guesses, asked=self.answers)
        turn.detects = spoken.code == AUTO
        self._heard_turn = turn
        rival = previous
        if previous is not None and previous.rival is not None and not previous.rival.over.is_set():
            rival = previous.rival  # it is not decided yet what the last sound was
        if rival is not None:
            self._contest(turn, rival)
        self._show(TurnHeard(turn.number, event.start, over=False))
        self._start(turn)

    def _contest(self, turn: Turn, rival: Turn) -> None:
        """A reply that may be heard while the user makes a sound is paused."""
        if self.interruptible and rival.answered and not rival.over.is_set():
            self._floor.contest(turn, rival)
            self._show(FloorChange(turn.number, rival.number, "paused"))

    def _turn_event(self, event: SpeechPaused | SpeechResumed | TurnEnded, now: float) -> None:
        turn = self._heard_turn
        assert turn is not None, "the detector begins a turn before anything happens in it"
        if turn.over.is_set():  # it has failed while it was heard
            self._heard_turn = None if isinstance(event, TurnEnded) else turn
            return
        assert turn.transcriber is not None, "it is heard"
        match event:
            case SpeechResumed():
                turn.speaking = True
                turn.transcriber.resume(event, anew=turn.dismissed, whole=turn.detects)
                if turn.dismissed:
                    turn.dismissed = False
                    if turn.rival is not None:
                        self._contest(turn, turn.rival)
                    # Whoever was told that there was nothing to listen to hears of it again.
                    self._show(TurnHeard(turn.number, event.speech_start, over=False))
                turn.recorder.retract(Mark.PAUSE, Mark.SPEECH_END)
                self._endpointing.judge(turn)
                turn.wake()
            case SpeechPaused():
                turn.speaking = False
                turn.transcriber.pause(event)
                turn.recorder.retract(Mark.PAUSE, Mark.SPEECH_END)
                turn.recorder.mark(Mark.SPEECH_END, self._hearing.when(event.speech_end))
                turn.recorder.mark(Mark.PAUSE, now)
                self._endpointing.judge(turn)
            case TurnEnded():
                turn.ended, turn.speaking = True, False
                turn.recorder.retract(Mark.SPEECH_END)  # a pause tells it before all is known
                turn.recorder.mark(Mark.SPEECH_END, self._hearing.when(event.speech_end))
                turn.recorder.mark(Mark.ENDPOINT, now)
                turn.recorder.speech_end = event.speech_end
                if not turn.dismissed:
                    self._show(TurnHeard(turn.number, event.sample, over=True))
                if final := turn.transcriber.end(event):
                    self._note_transcript(turn, final)
                turn.wake()
                self._weigh(turn)
                self._heard_turn = None
                if not self._full_duplex:
                    self._microphone.hold()

    def _weigh(self, turn: Turn) -> None:
        """Decide who has the floor; a turn that was nothing to listen to ends with its silence."""
        rival = turn.rival
        match self._floor.weigh(turn):
            case Verdict.INTERRUPT if rival:
                self._show(FloorChange(turn.number, rival.number, "interrupted"))
            case Verdict.RESUME if rival:
                self._show(FloorChange(turn.number, rival.number, "resumed"))
            case _:
                pass
        if turn.dismissed and turn.ended:
            turn.scope.cancel()
            if self._last_turn is turn:
                self._last_turn = turn.rival

    # ---- a turn

    async def _take_turn(self, turn: Turn, previous: Turn | None) -> None:
        outcome: Outcome = "interrupted"
        heard = ""
        with turn.scope:
            try:
                async with anyio.create_task_group() as work:
                    work.start_soon(self._recognise, turn)
                    work.start_soon(self._hear_out, turn)
                    outcome = "done" if await self._respond(turn, previous) else "abandoned"
                    work.cancel_scope.cancel()  # nobody waits for what the ear makes of it
            except Exception as error:
                # A stage that fails ends its turn, never the session.
                outcome = "failed"
                while isinstance(error, ExceptionGroup):
                    error = error.exceptions[0]
                if isinstance(error, VoiceloopError):
                    reason = error.message
                    logger.warning("turn %d failed: %s", turn.number, reason)
                else:
                    reason = repr(error)
                    logger.error("turn %d failed", turn.number, exc_info=error)
                self._show(Notice(f"the reply failed: {reason}"))
        if turn.dismissed:
            outcome = "abandoned"
        if turn.reply is not None:
            if turn.reply.instead is not None:
                if outcome == "done":
                    outcome, heard = "silent", turn.reply.instead
                if not (turn.reply.called or turn.returned):
                    self._conversation.heard(0)  # the model has said nothing of it
            elif outcome == "done" and not turn.reply.too_long:
                heard = turn.reply.said.strip()
            else:
                whole = turn.reply.committed and (outcome == "done" or not self.spoken)
                tokens = turn.reply.tokens if whole else self._player.stop().tokens
                if turn.returned and tokens:
                    tokens += self._called_after
                heard = self._conversation.heard(0 if turn.cut_off else tokens).strip()
                if outcome == "failed":
                    heard = f"{heard} {turn.reply.apology}".strip()
            self._called_after = turn.reply.tokens
            self._called = turn.reply.called
        turn.rival = turn.before = turn.reply = None  # or every turn would keep the one before it
        turn.over.set()
        if not self._full_duplex:
            self._microphone.release()
        read, self._tokens_read = self._tokens_read, self._conversation.tokens_read
        if self._tokens_read > read:
            turn.recorder.count("tokens_read", self._tokens_read - read)
        turn.recorder.seed = self._conversation.seed
        self._show(turn.recorder.trace(outcome, heard))

    async def _recognise(self, turn: Turn) -> None:
        """Decode what the user says until every sample before the endpoint has been decoded."""
        transcriber = turn.transcriber
        while turn.final is None and transcriber is not None:
            changed = turn.changed
            decode = turn.ended or self._overlap.stages
            job = transcriber.next_job() if decode else None
            if job is None:
                await changed.wait()
                continue
            begun = anyio.current_time()
            asr, runner = self._engines.asr, self._engines.asr_runner
            urgency = first if job.final else turn.urgency
            sure = False
            if turn.detects:
                code, probability = await runner.call(
                    partial(asr.detect_language, job.pcm), priority=urgency
                )
                sure = probability >= SURE_OF_LANGUAGE
                if code != turn.language.code:
                    turn.language, turn.chance = language(code), None
            words = await runner.call(
                partial(
                    asr.transcribe,
                    job.pcm,
                    final=job.final,
                    timed=job.timed,
                    language=turn.language.code,
                ),
                priority=urgency,
            )
            if sure and words and job.final and not (turn.dismissed or turn.contested):
                turn.detects = False
                if self.language.code == AUTO:  # nobody has chosen one meanwhile
                    self.language = turn.language
            name = "final" if job.final else "partial"
            text = " ".join(word.text for word in words)
            now = anyio.current_time()
            until_s = job.end / SPEECH_RATE
            turn.recorder.span(
                Lane.ASR, name, begun, now, words=len(words), text=text, until_s=until_s
            )
            self._note_transcript(turn, transcriber.accept(job, words))

    async def _hear_out(self, turn: Turn) -> None:
        """Have each silence judged by the sound of the voice before it, where a model can."""
        model, runner = self._engines.turn, self._engines.turn_runner
        while model and runner and not turn.ended:
            changed, silent = turn.changed, self._endpointing.to_hear(turn)
            if silent is None:
                await changed.wait()
                continue
            begun, (since, pcm) = anyio.current_time(), silent
            probability = await runner.call(
                partial(model.end_of_turn_probability, pcm), priority=turn.urgency
            )
            self._endpointing.hear(turn, since, probability, begun)
            self._look(turn)

    def _note_transcript(self, turn: Turn, transcript: Transcript) -> None:
        now = anyio.current_time()
        if transcript.text:
            turn.recorder.mark(Mark.FIRST_PARTIAL, now)
        if transcript.final:
            turn.final = transcript
            turn.recorder.mark(Mark.TRANSCRIPT_FINAL, now)
            if turn.transcriber is not None:
                turn.recorder.count("retracted_words", turn.transcriber.retracted)
        turn.heard = transcript
        self._show(transcript)
        turn.wake()
        self._weigh(turn)
        self._endpointing.judge(turn)
        self._look(turn)

    async def _respond(self, turn: Turn, previous: Turn | None) -> bool:
        """Keep the language model at what the user has said, and answer once that may be all.

        True after an answer; False where there is nothing to answer, or where the user went on in
        a new turn before there was one: then both are one turn.
        """
        for earlier in (previous, turn.rival):
            if earlier is not None:
                await earlier.over.wait()
        if turn.returned:
            return await self._answer(turn, "")
        prefilled = ""
        while True:
            changed = turn.changed
            if turn.dismissed:
                await changed.wait()
                continue
            text, whole = turn.understood()
            guessing = turn.asked and turn.guesses > 0
            silent = turn.final is None and whole
            if silent and not guessing and self._endpointing.unread(turn, bare(text)):
                prefilled = bare(text)
                await self._ask(turn, prefilled)
                continue
            while (rewritten := self._rewritten) is not None:
                prefilled = ""
                await self._engines.llm_runner.call(rewritten)
                if self._rewritten is rewritten:  # a turn that is cancelled leaves it to the next
                    self._rewritten = None
            if turn.final is not None:
                newer = self._last_turn
                assert newer is not None
                moved_on = newer is not turn and not turn.insisted
                if not text or moved_on:
                    if moved_on:
                        newer.carried = text
                        self._endpointing.judge(newer)
                    if prefilled or turn.reply is not None:
                        await self._prefill(turn, "")
                    return False
                turn.guesses = int(turn.asked)
            if whole and text and turn.guesses and turn.asked:
                turn.guesses -= 1
                if await self._answer(turn, text):
                    return True
                prefilled = ""
                continue
            if not whole and self._endpointing.asks_model(turn):
                text = bare(turn.hypothesis)
            if text == prefilled or not self._overlap.prefill:
                await changed.wait()
                continue
            begun = anyio.current_time()
            await self._prefill(turn, text)
            prefilled = text
            if whole or not guessing or not self._endpointing.asks_model(turn):
                continue
            self._learn(turn, text, begun)  # they may have fallen silent meanwhile
            if self._endpointing.expects(turn, text):
                turn.guesses -= 1
                if await self._answer(turn, turn.hypothesis, ahead=True):
                    return True
                prefilled = ""

    async def _ask(self, turn: Turn, words: str) -> None:
        """Have the model read `words`, and learn how likely the user has ended with them."""
        begun = anyio.current_time()
        await self._prefill(turn, words)
        self._learn(turn, words, begun)

    def _learn(self, turn: Turn, words: str, begun: float) -> None:
        self._endpointing.learn(turn, words, begun)
        self._look(turn)

    def _look(self, turn: Turn) -> None:
        """The silence that there is may be enough by now."""
        if turn is self._heard_turn:
            for event in self._hearing.between(self._endpointing.silence_ms(turn)):
                assert not isinstance(event, SpeechStarted), "it began long ago"
                self._turn_event(event, anyio.current_time())

    async def _prefill(self, turn: Turn, text: str) -> None:
        begun = anyio.current_time()
        if text:
            turn.recorder.mark(Mark.PREFILL_START, begun)
        steps = self._conversation.prefill(text, turn.number)
        runner = self._engines.llm_runner
        async with aclosing(runner.stream(steps, priority=turn.urgency)) as chunks:
            async for _ in chunks:
                pass
        turn.recorder.span(Lane.PREFILL, "prefill", begun, anyio.current_time(), text=text)

    async def _answer(self, turn: Turn, text: str, *, ahead: bool = False) -> bool:
        """Reply to `text`; False where it turned out not to be what the user said.

        `ahead` of the user's silence, it goes on for as long as they seem to have said just that.
        """
        assert self._stage is not None
        turn.ahead = ahead
        self._replying = turn
        turn.reply = Reply(
            text,
            turn.recorder,
            self._stage,
            turn.voiced,
            turn.urgency,
            # An answer to half a sentence is no draft of the answer to the whole.
            anew=turn.reply is not None and not turn.reply.doubted,
            returned=turn.returned,
            spoken=self.spoken,
            voice=self.voice,
            most=self.most_tokens,
            read=partial(self._read, turn, text, anyio.current_time()),
        )
        if turn.final is not None:
            turn.reply.commit()
        return await turn.reply.run()

    def _read(self, turn: Turn, text: str, begun: float) -> None:
        """The reply's first words are there, and with them what the model thinks of the end."""
        words = bare(text)
        if turn.final is None and self._endpointing.unread(turn, words):
            self._learn(turn, words, begun)
        if turn.reply is not None and self._endpointing.doubts(turn, words):
            # Should they not go on after all, the second half of the silence is time enough.
            silent_at = turn.recorder.at(Mark.SPEECH_END)
            waited = 0.0 if silent_at is None else anyio.current_time() - silent_at
            half = self._hearing.policy.incomplete_ms / 2000
            turn.reply.hesitate(max(0.0, half - waited))

    def _call_tool(self, call: ToolCall) -> str | None:
        if call.problem:
            self._show(Notice(f"the model wrote a call that cannot be read: {call.problem}"))
            return json.dumps({"error": f"the call cannot be read: {call.problem}"})
        if self._foreign(call.name):
            return None
        assert self._tasks is not None
        result = run_tool(call.name, call.arguments, self._wall_clock())
        if result.rings_after:
            self._tasks.start_soon(self._ring, result)
        return result.text

    async def _ring(self, result: ToolResult) -> None:
        """Tell the user when a timer is over."""
        self._timers += 1
        await anyio.sleep(result.rings_after)
        self._timers -= 1
        self._show(Notice(result.rings))
