"""Reply: one attempt to answer a turn. It thinks, speaks and plays at the same time.

    think (turn/thinking) | cut (tts/clauses) | speak (turn/speech) | play (audio/player)

Thinking calls the cut with each burst of tokens. Bounded streams lead from the cut to synthesis and
from there to the player, which all work at the same time. No stage knows which one comes after it.

A reply may begin on the guess that the user has finished. Before its gate opens, nothing is shown
or played, tools wait, and thinking pauses after the first clause. Others decide whether the guess
was right.
"""

from __future__ import annotations

from dataclasses import replace

import anyio
import anyio.lowlevel
from anyio.abc import ObjectSendStream
from anyio.streams.memory import MemoryObjectReceiveStream

from voiceloop.dialogue import actions, inputs
from voiceloop.skills.known import Answer
from voiceloop.trace.record import DROPPED_REPLY, REPLY, Lane, Mark, Recorder
from voiceloop.tts.clauses import ClauseCutter
from voiceloop.tts.normalize import normalize
from voiceloop.tts.pace import Tempo
from voiceloop.turn.ahead import catch_up, look_ahead
from voiceloop.turn.resources import Resources, Voiced
from voiceloop.turn.speech import Gate, Speech
from voiceloop.turn.thinking import Thinking, Thought
from voiceloop.types import LOADS, Clause, Event, Span, SpeechChunk, TokenBurst, ToolCall

HEAD_START_S = 0.2
"""Maximum seconds for which thinking pauses while the voice makes its first sound. After a longer
pause, a short first clause would be over before the next clause is ready."""
CLAUSES, CHUNKS = 8, 8
"""Items that the streams between the stages hold before they block their producer."""


class Reply:
    """An attempt to answer a turn. Call `run` once."""

    def __init__(
        self,
        request: actions.StartReply,
        recorder: Recorder,
        resources: Resources,
        gate: Gate,
        answer: Answer | None = None,
    ) -> None:
        """Prepare the reply that is requested. `answer` is the text of a skill or an announcement
        that is said instead; None if the language model replies."""
        self.asked = request
        self.gate = gate
        self.thinking = Thinking(request, recorder, resources, gate, answer)
        self._withheld: list[Event] = []
        """Events to show when the gate opens."""
        self._recorder = recorder
        self._resources = resources
        self._head_start_s = 0.0
        """Maximum seconds for which thinking pauses while the voice makes its first sound. 0 if
        stages do not overlap, or if audio must be queued before a slow voice plays."""

    def begin(self) -> None:
        """Make this reply the player's current reply. It sounds once the gate opens."""
        lead_s = self._resources.pace.lead_s
        at_once = self._resources.overlap.stages and not lead_s
        self._head_start_s = HEAD_START_S if at_once else 0.0
        self._resources.player.begin(self.asked.turn, self._recorder, lead_s=lead_s)

    def act(self, action: actions.ForReply) -> None:
        """Carry out an action of the core."""
        player = self._resources.player
        match action:
            case actions.Commit():
                self.commit()
            case actions.Drop():
                self.gate.scope.cancel()
            case actions.Hesitate():
                self.gate.hesitates_s = action.seconds
            case actions.PauseReply():
                player.pause()
                self.gate.suspend()
            case actions.ResumeReply():
                self.gate.resume()
                player.resume()
            case actions.BringResult():
                self.returned(action.call, action.result)

    def returned(self, call: ToolCall, result: str) -> None:
        """Give the model the result of a call of voiceloop's own tools, and show both."""
        self.thinking.returned(call, result)
        if not call.problem:
            self._resources.show(replace(call, result=result))

    def commit(self) -> None:
        """Carry out the effects of a known answer, open the gate, and show the events withheld so
        far."""
        skills, answer = self._resources.skills, self.thinking.answer
        if answer is not None:
            skills.do(answer)
            self._resources.player.gain = skills.voice.gain
            if effect := self.thinking.effect:
                self._resources.show(effect)
        self.gate.commit()
        self._resources.player.open()
        withheld, self._withheld = self._withheld, []
        for event in withheld:
            self._resources.show(event)

    async def run(self, voiced: Voiced) -> None:
        """Reply, and return when the whole reply has sounded or the guess was dropped. A drop
        cancels `gate.scope`.

        `voiced` is audio of earlier attempts at the turn. Clauses in it are reused, and new ones
        are added. A reply that was not committed leaves nothing behind in the player. If the
        language model fails, its text so far and an apology are spoken, and then its error is
        raised.
        """
        to_speak, cut = anyio.create_memory_object_stream[Clause](CLAUSES)
        to_play, spoken = anyio.create_memory_object_stream[SpeechChunk](CHUNKS)
        answer, resources, begun = self.thinking.answer, self._resources, anyio.current_time()
        voice = (answer and answer.voice) or resources.skills.voice
        speech = Speech(
            self.asked.options, self._recorder, resources, self.gate, voiced, voice.speed
        )
        try:
            with self.gate.scope:
                async with anyio.create_task_group() as stages:
                    stages.start_soon(speech.run, cut, to_play)
                    stages.start_soon(self._play, spoken)
                    await self._think(to_speak, speech)
                await self.gate.opened()  # a written or empty reply may be complete before it opens
                async with anyio.create_task_group() as meanwhile:
                    meanwhile.start_soon(self._work_ahead, self._recorder)
                    await self._resources.player.drain()
                    meanwhile.cancel_scope.cancel()
                if self.thinking.failure is not None:
                    raise self.thinking.failure
        finally:
            self._account(begun)

    async def _work_ahead(self, recorder: Recorder) -> None:
        """Prepare the next turn while the reply sounds."""
        if self.thinking.answer is not None and self._resources.overlap.prefill:
            await catch_up(self._resources, recorder)
        await look_ahead(self._resources, recorder, "", recorder.turn + 1)

    async def _think(self, to_speak: ObjectSendStream[Clause], speech: Speech) -> None:
        """Think and cut. An uncommitted reply stops after its first clause until the gate opens."""
        thinking = self.thinking
        cutter = ClauseCutter(self._recorder.turn, thinking.language, self._tempo)
        cut = _Cut(cutter, speech, to_speak, self._head_start_s)
        since, has_read = anyio.current_time(), False

        async def take(thought: Thought) -> None:
            nonlocal has_read
            if not has_read:
                has_read = True
                self._report_read(since)
            await self._take(thought, cut)

        async with to_speak:
            await anyio.lowlevel.checkpoint()  # lets the other stages start first
            await thinking.run(take)
            if not has_read and thinking.answer is not None:
                self._report_read(since)
            if thinking.instead:
                text = f" {thinking.instead}" if thinking.said else thinking.instead
                self._show(TokenBurst(self._recorder.turn, (), text))
            await cut.finish()
            if clause := self._last(cut.count):
                await to_speak.send(clause)

    def _tempo(self) -> Tempo:
        """Return how fast the reply is written and spoken. What rules say is there at once."""
        return Tempo() if self.thinking.answer is not None else self._resources.pace.tempo

    async def _take(self, thought: Thought, cut: _Cut) -> None:
        """Show what the model has thought, and cut what is to be spoken of it."""
        thinking = self.thinking
        match thought:
            case inputs.ToolsCalled():
                self._resources.player.expect_gaps()
                await cut.cut_off()
                self._resources.report(thought)
            case ToolCall():
                self._show(thought)
            case TokenBurst() if waits := self._waits(thought):
                await cut.cut_off()
                await cut.send(waits)
            case TokenBurst():
                self._show(thought)
                if self.asked.options.spoken and not thinking.question:
                    await cut.feed(thought)
            case None:
                pass

    def _waits(self, burst: TokenBurst) -> Clause | None:
        """If `burst` says that the model is being loaded, show a sentence that says so, and return
        it as a clause. It is no part of the conversation. None if it was said before, and in a
        written reply."""
        thinking, text = self.thinking, self.thinking.language.loads
        wanted = LOADS in burst.facts and thinking.counts[LOADS] == 1
        if not (wanted and text and self.asked.options.spoken):
            return None
        self._resources.player.expect_gaps()
        self._show(TokenBurst(burst.turn, (), f"{text} "))
        said = normalize(text, thinking.language)
        spans = tuple(Span(word.start, word.end, thinking.tokens) for word in said.words)
        return Clause(burst.turn, 0, text, said.text, spans)

    def _last(self, index: int) -> Clause | None:
        """Return the clause with which the reply ends because a tool needs consent or the reply
        says nothing; None if there is neither."""
        thinking = self.thinking
        text = (self.asked.options.spoken and thinking.question) or thinking.instead
        if not text:
            return None
        # This text is normalised alone. Otherwise open markup in the reply would hide it.
        said = normalize(text, thinking.language)
        own, before = thinking.question_tokens, thinking.tokens - thinking.question_tokens
        spans = tuple(
            Span(word.start, word.end, own and before + own * at // len(said.words))
            for at, word in enumerate(said.words, 1)
        )
        return Clause(self._recorder.turn, index, text, said.text, spans, last=True)

    def _report_read(self, begun: float) -> None:
        """Report to the core that the language model has read the user's words."""
        found, asked = self._resources.conversation.standing, self.asked
        self._resources.report(
            inputs.Read(asked.turn, asked.text, found.end_probability, begun, found.exchanges)
        )

    async def _play(self, spoken: MemoryObjectReceiveStream[SpeechChunk]) -> None:
        player, at_once = self._resources.player, self._resources.overlap.stages
        async with spoken:
            for chunk in [] if at_once else [chunk async for chunk in spoken]:
                await player.play(chunk)
            async for chunk in spoken:
                await player.play(chunk)

    def _show(self, event: Event) -> None:
        """Show an event, or withhold it while the reply is only a guess."""
        if self.gate.committed:
            self._resources.show(event)
        else:
            self._withheld.append(event)

    def _account(self, begun: float) -> None:
        """Record the reply in the trace: its span, from `begun` until now, and its counts. If it
        was dropped, take its marks back."""
        recorder, thinking, now = self._recorder, self.thinking, anyio.current_time()
        about: dict[str, float | str] = {"generated": thinking.tokens}
        if thinking.answer is not None:
            about["by"] = "skill"
        if self.gate.committed:
            until = now if thinking.until is None else thinking.until
            recorder.span(Lane.REPLY, REPLY, begun, until, **about)
            for name, count in thinking.counts.items():
                recorder.count(name, count)
            if thinking.limited:
                recorder.count("too_long")
            return
        recorder.span(Lane.REPLY, DROPPED_REPLY, begun, now, **about)
        self._resources.player.stop()
        recorder.count("replies_dropped")
        recorder.count("wasted_tokens", thinking.tokens + thinking.counts["unchosen"])
        recorder.retract(
            Mark.FIRST_BURST,
            Mark.FIRST_CLAUSE,
            Mark.FIRST_SYNTHESIS,
            Mark.REPLY_END,
            Mark.SYNTHESIS_END,
        )


class _Cut:
    """Cuts the text of one reply into clauses, and sends these to the synthesis."""

    def __init__(
        self,
        cutter: ClauseCutter,
        speech: Speech,
        to_speak: ObjectSendStream[Clause],
        head_start_s: float,
    ) -> None:
        """Send to `speech` by `to_speak`. After each clause, wait until it makes its first sound,
        for `head_start_s` seconds at most."""
        self.count = 0
        """Number of clauses so far."""
        self._cutter, self._speech, self._to_speak = cutter, speech, to_speak
        self._head_start_s = head_start_s
        self._later = list[TokenBurst]()
        """The bursts so far, if the reply is cut only once it is written."""
        self._begun = False

    async def feed(self, burst: TokenBurst) -> None:
        """Add the reply's next tokens, and send the clauses that they complete."""
        if not self._speech.resources.overlap.stages:
            self._later.append(burst)
            return
        self._begun = True
        for clause in self._cutter.feed(burst):
            await self.send(clause)

    async def cut_off(self) -> None:
        """Send the text so far as a clause, because the next text may take long to come."""
        for clause in self._cutter.cut_off():
            await self.send(clause)

    async def finish(self) -> None:
        """Send the rest of the text."""
        clauses = [clause for burst in self._later for clause in self._cutter.feed(burst)]
        for clause in clauses:
            await self.send(clause)
        if self._begun or self._later:
            for clause in self._cutter.flush():
                await self.send(clause)

    async def send(self, clause: Clause) -> None:
        """Send a clause. Return when thinking may go on."""
        speech = self._speech
        speech.recorder.mark(Mark.FIRST_CLAUSE, anyio.current_time())
        if not speech.resources.overlap.held_audio:
            await speech.gate.opened()
        await self._to_speak.send(replace(clause, index=self.count))
        self.count += 1
        await speech.gate.opened()
        # Thinking takes cores and Python's lock from the voice, and its result is not needed before
        # this clause has sounded.
        with anyio.move_on_after(self._head_start_s):
            await speech.begun.wait()
