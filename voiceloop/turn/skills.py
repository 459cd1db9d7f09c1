"""The skills of a session, and the state that they need: timers, voice settings, facts, and what
was said."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from random import Random

import anyio
from msgspec import Struct

from voiceloop.config import Config
from voiceloop.dialogue import actions, inputs
from voiceloop.dialogue.inputs import Reports
from voiceloop.engines import Conversation, Llm
from voiceloop.llm.text.wording import told
from voiceloop.skills.answer import answer
from voiceloop.skills.clock import zone
from voiceloop.skills.known import Answer, Fact, SkillContext, Timer, VoiceAdjustment
from voiceloop.skills.tools import TOOLS, run_tool
from voiceloop.tools.results import DATA_ONLY, IF_ASKED
from voiceloop.tools.toolbox import NO_TOOLS, Toolbox
from voiceloop.types import Tool, ToolCall

REMEMBERED = 20
"""Maximum number of the user's utterances that are kept."""


def wall_time(timezone: str) -> datetime:
    """Return the time of day in `timezone`, or on this machine if it is empty. Raises ConfigError
    for an unknown zone."""
    return datetime.now(zone(timezone))


def begun(llm: Llm, config: Config, now: datetime, toolbox: Toolbox = NO_TOOLS) -> Conversation:
    """Begin a conversation with the language model `llm` at the time `now`."""
    conversation = llm.conversation(system=told(llm.system, now, config.place))
    usable = NO_TOOLS if unusable(conversation, config, toolbox) else toolbox
    if tools := offered(config, usable):
        conversation.rewrite(prompt(llm.system, now, config, usable), (), tools)
    return conversation


def prompt(system: str, now: datetime, config: Config, toolbox: Toolbox = NO_TOOLS) -> str:
    """Return the system prompt of a conversation that begins at `now`. If `toolbox` has tools, the
    prompt says how to use them."""
    whole = told(system, now, config.place)
    return f"{whole} {DATA_ONLY} {IF_ASKED}" if whole and toolbox else whole


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
    asks_for_time: bool
    facts: tuple[Fact, ...] = ()


class Skills:
    """The skills of one conversation. The attributes are their state, e.g. the timers.

    The state is kept when a client connects again.
    """

    def __init__(self, *, paced: bool = True, keeps: bool = False, seed: int | None = None) -> None:
        """Begin without timers. `paced` says whether replies can be made slower and faster, and
        `keeps` whether facts outlast the conversation. `seed` decides what is left to chance; None
        draws one."""
        self.voice = VoiceAdjustment()
        self._paced = paced
        self._timers: list[tuple[float, Timer]] = []
        """Timers, each with the time of the loop's clock at which it is over."""
        self._begun = 0
        """Number of timers so far."""
        self._said = deque[str](maxlen=REMEMBERED)
        self._heard = ""
        self._asks_for_time = False
        self._just_set: int | None = None
        self._changed = anyio.Event()
        self.facts: Sequence[Fact] = ()
        """What the user asked to be remembered, oldest first."""
        self._keeps = keeps
        self._just_kept: int | None = None
        self._chance = Random(seed)
        self._seed = self._chance.getrandbits(32)
        """Seed of the present turn. All attempts to answer the turn have the same luck."""

    @property
    def timers(self) -> Sequence[Timer]:
        """Running timers, in the order in which they ring."""
        return [timer for _, timer in sorted(self._timers, key=lambda one: one[0])]

    @property
    def heard(self) -> str:
        """What the user heard of the last reply; empty before the first."""
        return self._heard

    def answer(self, request: actions.StartReply, now: datetime) -> Answer | None:
        """Return the answer to what the user said, or None if the language model is to answer."""
        if request.announces:
            return Answer(request.announces.text)
        if request.returned or not request.options.skills:
            return None
        return answer(request.text, request.language, self._known(now))

    def call(self, call: ToolCall, now: datetime, code: str) -> str:
        """Carry out a tool call of the language model, and return its result. `code` is the user's
        language."""
        if call.problem:
            return json.dumps({"error": f"the call cannot be read: {call.problem}"})
        done = run_tool(call.name, call.arguments, self._known(now), code)
        self.do(done)
        return done.text

    def do(self, known: Answer) -> None:
        """Carry out the effects of an answer: change the voice, the facts and the timers."""
        if known.voice is not None:
            self.voice = known.voice
        if known.cancels:
            self._timers = [one for one in self._timers if one[1].number not in known.cancels]
        self._just_set = self._just_kept = None
        self.facts = [fact for fact in self.facts if fact.number not in known.strikes]
        if known.remembers:
            self._just_kept = max((fact.number for fact in self.facts), default=0) + 1
            self.facts = [*self.facts, Fact(self._just_kept, known.remembers)]
        if known.sets is not None:
            self._begun += 1
            self._just_set = self._begun
            timer = replace(known.sets, number=self._begun)
            self._timers.append((anyio.current_time() + timer.seconds, timer))
        self._changed.set()
        self._changed = anyio.Event()

    def note(self, said: str, heard: str, known: Answer | None) -> None:
        """Remember what the user said, and what they heard of the reply. `known` is the answer if a
        skill gave it; None if the language model replied."""
        self._seed = self._chance.getrandbits(32)
        if said.strip() and not (known and known.aside):
            self._said.append(said)
        self._heard = heard or self._heard
        self._asks_for_time = known is not None and known.asks_for_time
        if known is None:
            self._just_set = self._just_kept = None

    def memory(self) -> SkillsMemory:
        """Return the present state of the skills."""
        return SkillsMemory(
            self.voice,
            tuple(self.timers),
            self._begun,
            tuple(self._said),
            self._heard,
            self._asks_for_time,
            tuple(self.facts),
        )

    def recall(self, memory: SkillsMemory) -> None:
        """Take over the state of an earlier session. Timers that are over by now ring soon."""
        self.voice, self._begun = memory.voice, memory.begun
        self._said.extend(memory.said)
        self._heard, self._asks_for_time = memory.heard, memory.asks_for_time
        self.facts = memory.facts
        for timer in memory.timers:
            left_s = (timer.due - datetime.now(timer.due.tzinfo)).total_seconds()
            self._timers.append((anyio.current_time() + max(0.0, left_s), timer))
        self._changed.set()
        self._changed = anyio.Event()

    async def ringing(self) -> Reports:
        """Report each timer when it is over, until closed."""
        while True:
            changed, now = self._changed, anyio.current_time()
            over = [one for one in self._timers if one[0] <= now]
            self._timers = [one for one in self._timers if one[0] > now]
            for _, timer in over:
                yield inputs.Rang(timer.rings)
            next_s = min((due for due, _ in self._timers), default=float("inf")) - now
            with anyio.move_on_after(next_s):
                await changed.wait()

    def _known(self, now: datetime) -> SkillContext:
        return SkillContext(
            now if now.tzinfo else now.astimezone(),
            timers=self.timers,
            asked=tuple(self._said),
            heard=self._heard,
            voice=self.voice,
            paced=self._paced,
            asks_for_time=self._asks_for_time,
            just_set=self._just_set,
            facts=self.facts,
            keeps=self._keeps,
            just_kept=self._just_kept,
            seed=self._seed,
        )
