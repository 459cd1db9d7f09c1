"""The skills of a session, and the state that they need: timers, voice settings, facts, and what
was said."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any

import anyio
from msgspec import Struct

from voiceloop.dialogue import actions, inputs
from voiceloop.engines import Conversation, Llm
from voiceloop.languages import installed
from voiceloop.llm.text.messages import SPOKEN, told
from voiceloop.settings.config import Config
from voiceloop.skills.answer import answer
from voiceloop.skills.clock import until, zone
from voiceloop.skills.known import Answer, Fact, Pending, SkillContext, Timer, VoiceAdjustment
from voiceloop.skills.phrases import phrases_of
from voiceloop.skills.talk import limits
from voiceloop.skills.timers import after_ring
from voiceloop.skills.tools import TOOLS, run_tool
from voiceloop.tools.results import DATA_ONLY, IF_ASKED
from voiceloop.tools.toolbox import NO_TOOLS, Toolbox
from voiceloop.types import Tool, ToolCall

LATE_S = 60
"""Seconds after which a timer that could not ring counts as late."""
REMEMBERED = 20
"""Maximum number of the user's utterances that are kept."""


def wall_time(timezone: str) -> datetime:
    """Return the time of day in `timezone`, or on this machine if it is empty. Raises ConfigError
    for an unknown zone."""
    return datetime.now(zone(timezone))


def begun(llm: Llm, config: Config, now: datetime, toolbox: Toolbox = NO_TOOLS) -> Conversation:
    """Begin a conversation with the language model `llm` at the time `now`."""
    conversation = llm.conversation(system=prompt(llm, llm.system, now, config))
    usable = NO_TOOLS if unusable(conversation, config, toolbox) else toolbox
    if tools := offered(config, usable):
        conversation.rewrite(prompt(llm, llm.system, now, config, usable), (), tools)
    return conversation


def prompt(
    llm: Llm, system: str, now: datetime, config: Config, toolbox: Toolbox = NO_TOOLS
) -> str:
    """Return the system prompt of a conversation that begins at `now`. voiceloop's own prompt also
    says what `llm` cannot do. If `toolbox` has tools, the prompt says how to use them."""
    if system == SPOKEN and not llm.acts:
        system = f"{system} {limits([described(tool) for tool in toolbox.offered])}".strip()
    whole = told(system, now, config.place)
    return f"{whole} {DATA_ONLY} {IF_ASKED}" if whole and toolbox else whole


def described(tool: Tool) -> str:
    """Return a tool as a text in which the words for what it does are found."""
    return f"{tool.name}: {tool.description}"


def offered(config: Config, toolbox: Toolbox = NO_TOOLS) -> Sequence[Tool]:
    """Return the tools that the language model is told about: voiceloop's own, and those in
    `toolbox`. The starter model is told of none, since it was trained to know its own."""
    if config.llm.answers_little:
        return ()
    built_in = TOOLS if config.llm.skills == "tools" else ()
    return (*(tool for tool in built_in if tool.name not in toolbox), *toolbox.offered)


def unusable(conversation: Conversation, config: Config, toolbox: Toolbox) -> str:
    """Return why the model cannot be told about the tools of the user's own; empty if it can."""
    if not toolbox:
        return ""
    if config.llm.answers_little:
        return "the starter model knows no tools of yours: choose another with --preset"
    bare, full = (conversation.opening("", tools) for tools in ((), toolbox.offered))
    if bare is None or full is None:
        return ""
    if full[0] > full[1]:
        return f"your tools take {full[0]} tokens, and {full[1]} are the most: raise llm.context"
    same = bare[0] == full[0]
    return "the chat template of the model knows no tools: choose another model" if same else ""


class SkillsMemory(Struct, frozen=True):
    """The state of a conversation's skills. A later session of a server continues from it."""

    voice: VoiceAdjustment
    timers: tuple[Timer, ...]
    begun: int
    """Number of timers so far."""
    said: tuple[str, ...]
    """What the user has said last, the oldest first."""
    heard: str
    pending: Pending | None = None
    facts: tuple[Fact, ...] = ()
    subject: int | None = None
    just_rung: Timer | None = None


class Skills:
    """The skills of one conversation, and their state, e.g. the timers.

    The state is kept when a client connects again.
    """

    def __init__(self, *, paced: bool = True, keeps: bool = False, seed: int | None = None) -> None:
        """Begin without timers. `paced` says whether replies can be made slower and faster, and
        `keeps` whether facts outlast the conversation. `seed` decides what is left to chance; None
        draws one."""
        self._chance = Random(seed)
        luck = self._chance.getrandbits(32)  # all attempts to answer one turn have the same
        self._known = SkillContext(datetime.min, paced=paced, keeps=keeps, seed=luck)
        """What skills know. The time and the timers are filled in when they are asked."""
        self._timers: list[tuple[float, Timer]] = []
        """Timers, each with the time of the loop's clock at which it is over. A paused one waits
        beyond that."""
        self._begun = 0
        """Number of timers so far."""
        self._phrases = phrases_of("en")
        """Phrases of the user's language."""
        self._changed = anyio.Event()

    @property
    def timers(self) -> Sequence[Timer]:
        """Running timers, in the order in which they ring."""
        return [timer for _, timer in sorted(self._timers, key=lambda one: one[0])]

    @property
    def heard(self) -> str:
        """What the user heard of the last reply; empty before the first."""
        return self._known.heard

    @property
    def voice(self) -> VoiceAdjustment:
        """How replies sound, relative to the configured voice."""
        return self._known.voice

    @property
    def facts(self) -> Sequence[Fact]:
        """What the user asked to be remembered, oldest first."""
        return self._known.facts

    def answer(
        self,
        request: actions.StartReply,
        now: datetime,
        tools: Sequence[Tool] = (),
        *,
        acts: bool = False,
        persona: bool = False,
    ) -> Answer | None:
        """Return the answer to what the user said, or None if the language model is to answer.
        `tools` are the tools of the user's own that it may call. With `acts`, it may do things
        itself. With `persona`, it says who it is."""
        if request.announces:
            return Answer(request.announces.text)
        if request.returned or not request.options.skills:
            return None
        if request.language in installed():
            self._phrases = phrases_of(request.language)
        texts = tuple(described(tool) for tool in tools)
        known = replace(self._at(now), tools=texts, acts=acts, persona=persona)
        return answer(request.text, request.language, known)

    def call(self, call: ToolCall, now: datetime, code: str) -> str:
        """Carry out a tool call of the language model, and return its result. `code` is the user's
        language."""
        if call.problem:
            return json.dumps({"error": f"the call cannot be read: {call.problem}"})
        done = run_tool(call.name, call.arguments, self._at(now), code)
        self.do(done)
        return done.text

    def do(self, known: Answer) -> None:
        """Carry out the effects of an answer: change the voice, the facts and the timers."""
        self._timers = [one for one in self._timers if one[1].number not in known.cancels]
        facts = [fact for fact in self.facts if fact.number not in known.strikes]
        kept = max((fact.number for fact in facts), default=0) + 1 if known.remembers else None
        if kept is not None:
            facts.append(Fact(kept, known.remembers))
        self.know(voice=known.voice or self.voice, facts=facts, just_kept=kept, just_set=None)
        if known.about:
            self.know(subject=known.about[-1])
        for timer in known.sets:
            self._set(timer)
        self._wake()

    def note(self, said: str, heard: str, known: Answer | None) -> None:
        """Remember what the user said, and what they heard of the reply. `known` is the answer if a
        skill gave it; None if the language model replied."""
        self.know(
            seed=self._chance.getrandbits(32),
            heard=heard or self.heard,
            pending=known.pending if known else None,
        )
        if said.strip() and not (known and known.aside):
            self.know(asked=(*self._known.asked, said)[-REMEMBERED:])
        if known is not None and known.about is not None:
            self.know(since_timers=0)
        elif self._known.since_timers is not None:
            self.know(since_timers=self._known.since_timers + 1)
        if known is None:
            self.know(just_set=None, just_kept=None)

    def memory(self) -> SkillsMemory:
        """Return the present state of the skills."""
        known = self._known
        return SkillsMemory(
            *(known.voice, tuple(self.timers), self._begun, tuple(known.asked), known.heard),
            *(known.pending, tuple(known.facts), known.subject, known.just_rung),
        )

    def recall(self, memory: SkillsMemory, code: str = "en") -> None:
        """Take over the state of an earlier session. Timers that are over by now ring soon. If they
        are late, this is said in the language `code`."""
        self._begun = memory.begun
        self.know(
            voice=memory.voice,
            asked=memory.said,
            heard=memory.heard,
            pending=memory.pending,
            facts=memory.facts,
            subject=memory.subject,
            just_rung=memory.just_rung,
        )
        if code in installed():
            self._phrases = phrases_of(code)
        for timer in memory.timers:
            left_s = (timer.due - datetime.now(timer.due.tzinfo)).total_seconds()
            self._timers.append((anyio.current_time() + left_s, timer))
        self._wake()

    async def ring(self, report: Callable[[inputs.Input], None]) -> None:
        """Report each timer when it is over, until cancelled."""
        while True:
            changed, now = self._changed, anyio.current_time()
            paused = [one for one in self._timers if one[1].paused_s is not None]
            runs = [one for one in self._timers if one[1].paused_s is None]
            over = [one for one in runs if one[0] <= now]
            self._timers = [*paused, *(one for one in runs if one[0] > now)]
            for due, timer in over:
                self.know(just_rung=timer, subject=timer.number, since_timers=0)
                self._go_on(timer, due, now)
                report(inputs.Rang(timer.rings if now - due < LATE_S else self._late(timer)))
            going = (due for due, timer in self._timers if timer.paused_s is None)
            next_s = min(going, default=float("inf")) - now
            with anyio.move_on_after(next_s):
                await changed.wait()

    def _late(self, timer: Timer) -> str:
        """Return what is said when a timer rings that was over while it could not ring."""
        time = self._phrases.time(timer.due)
        return self._phrases.says["late"].format(time=time, rings=timer.rings)

    def _go_on(self, timer: Timer, due: float, now: float) -> None:
        """Let a repeated timer, which was over at `due`, ring again at its first time after `now`.
        Both are times of the loop's clock."""
        while due <= now:
            again = after_ring(timer)
            if again is None:
                return
            due, timer = due + until(again.due, timer.due), again
        self._timers.append((due, timer))

    def _set(self, timer: Timer) -> None:
        """Start a timer, or let it take the place of the running one with its number."""
        if not timer.number:
            self._begun += 1
            timer = replace(timer, number=self._begun)
        due = anyio.current_time() + timer.seconds
        for former_due, former in self._timers:
            if former.number == timer.number:
                due = former_due + until(timer.due, former.due)
        self._timers = [one for one in self._timers if one[1].number != timer.number]
        self._timers.append((due, timer))
        self.know(just_set=timer.number, subject=timer.number)

    def _at(self, now: datetime) -> SkillContext:
        """Return what skills know at the time `now`."""
        return replace(self._known, now=now if now.tzinfo else now.astimezone(), timers=self.timers)

    def know(self, **known: Any) -> None:
        """Replace fields of what skills know."""
        self._known = replace(self._known, **known)

    def _wake(self) -> None:
        """Let `ring` look at the timers anew."""
        self._changed.set()
        self._changed = anyio.Event()
