"""A kept conversation that is open: it continues from the store, and its new turns are written
down.

The session reports each exchange that is over. While a reply sounds, this module reads every few
milliseconds how much of it was heard. The thread of `writer` does all writing.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
from msgspec.structs import replace

from voiceloop.conversations.records import (
    KeptCall,
    KeptSummary,
    KeptTurn,
    ResumedConversation,
    past,
    system_prompt,
    unanswered_end,
)
from voiceloop.conversations.store import (
    ConversationStore,
    StoreUnusable,
    fact_statement,
    heard_statement,
    now,
    skills_statement,
    strike_statement,
    summary_statement,
    turn_statement,
)
from voiceloop.conversations.writer import ConversationWriter
from voiceloop.engines import Conversation, Engines, Llm
from voiceloop.languages import language
from voiceloop.session import Session
from voiceloop.settings.config import Config
from voiceloop.skills.known import Fact
from voiceloop.tools.toolbox import NO_TOOLS, Toolbox
from voiceloop.turn.history import SpokenExchange
from voiceloop.turn.skills import Skills, SkillsMemory, offered, prompt, unusable
from voiceloop.types import Past, Tool

logger = logging.getLogger(__name__)

LOOK_S = 0.025
"""Seconds between two readings of how much of a reply was heard."""
MOST_HELD = 500
"""Maximum number of turns that are held in memory."""


class _Sounding(NamedTuple):
    """A turn whose reply sounds."""

    turn_id: int
    turn: KeptTurn
    """The turn as it was written last."""
    chars: int
    """Number of characters of the reply that were heard."""


class KeptConversation:
    """A kept conversation that is open.

    Some of its attributes are the history with which the conversation continues. The others say
    which parts of the present turn are written.
    """

    def __init__(
        self,
        resumed: ResumedConversation,
        write: Callable[..., None],
        trouble: Callable[[], str],
        number: int,
    ) -> None:
        """Continue from `resumed`. `write` executes statements in the store, and `number` is the
        number of the conversation there. `trouble` returns why statements are not executed, or an
        empty string."""
        self.turns = deque(resumed.turns, MOST_HELD)
        """The turns that the language model gets word for word, oldest first. Older turns are in
        `summary`."""
        self.summary = resumed.summary
        self.changed = anyio.Event()
        """An event that is set when a turn is over. A new event then takes its place."""
        self.stale = False
        """Whether the language model's prompt still has a fact that was deleted, or turns that were
        condensed."""
        self._resumed = resumed
        self._write = write
        self._trouble = trouble
        self._number = number
        self._next = resumed.next_number
        self._facts: Sequence[Fact] = resumed.facts
        self._skills: Skills | None = None
        self._toolbox = NO_TOOLS
        self._sounding: _Sounding | None = None
        """The turn that sounds now; None if there is none."""

    # ---- beginning

    def skills(self, engines: Engines) -> Skills:
        """Return the skills with the state that was kept. Timers that ended while the conversation
        was closed ring soon."""
        self._skills = skills = Skills(paced=engines.tts.paces, keeps=True)
        if self._resumed.skills:
            try:
                memory = msgspec.msgpack.decode(self._resumed.skills, type=SkillsMemory)
                skills.recall(memory, engines.tts.language())
            except msgspec.DecodeError as error:
                logger.warning("timers of this conversation cannot be read: %s", error)
        skills.know(facts=self._facts)
        return skills

    def conversation(
        self, llm: Llm, config: Config, at: datetime, toolbox: Toolbox = NO_TOOLS
    ) -> Conversation:
        """Return a conversation of the language model `llm` that has the whole history. `at` is the
        present time. The model may call the tools in `toolbox`."""
        found = llm.conversation(system=prompt(llm, llm.system, at, config))
        self._toolbox = NO_TOOLS if unusable(found, config, toolbox) else toolbox
        found.rewrite(*self.prompt(llm, config, at))
        return found

    def prompt(
        self, llm: Llm, config: Config, at: datetime
    ) -> tuple[str, list[Past], Sequence[Tool]]:
        """Return the system prompt, the exchanges and the tools for the language model.

        The starter model gets neither facts nor summaries: it was trained without them.
        """
        system = self.remembered(prompt(llm, llm.system, at, config, self._toolbox), config)
        return system, past(tuple(self.turns)), offered(config, self._toolbox)

    def remembered(self, system: str, config: Config) -> str:
        """Return the system prompt `system` with the facts and the summary added. For the starter
        model, return it unchanged."""
        if config.llm.answers_little:
            return system
        facts = self._skills.facts if self._skills else self._facts
        return system_prompt(system, facts, self.summary.text if self.summary else "")

    def greeting(self, engines: Engines) -> str:
        """Return the greeting for a conversation with earlier turns; an empty string for a new
        conversation."""
        spoken = language(engines.tts.language())
        return spoken.welcome if self.turns or self.summary else ""

    # ---- while the session runs

    def note(self, exchange: SpokenExchange) -> None:
        """Write an exchange that is over, and add it to `turns`."""
        turn = self._turn(exchange)
        turn = replace(turn, ended=now(), outcome=exchange.outcome)
        turn = replace(turn, heard=exchange.heard, kept=exchange.kept)
        self._write(turn_statement(self._number, turn, len(exchange.heard)))
        self._sounding = None
        self._next = turn.number + 1
        self.turns.append(turn)
        self._note_skills()
        self.changed.set()
        self.changed = anyio.Event()

    async def follow(self, session: Session, notice: Callable[[str], None]) -> None:
        """Write how much of each reply was heard, while the reply sounds. Runs until cancelled.
        Call `notice` when the store cannot be written any more, and when it can be again."""
        told_of = False
        while True:
            if exchange := session.sounding:
                self._look(exchange)
            trouble = self._trouble()
            if bool(trouble) is not told_of:
                notice(
                    f"this conversation is not kept from here on: {trouble}"
                    if trouble
                    else "this conversation is kept again"
                )
                told_of = bool(trouble)
            await anyio.sleep(LOOK_S)

    def condensed(self, through: int, text: str) -> None:
        """Replace the turns up to the number `through` by the summary `text`. If `text` is empty,
        drop them."""
        self.summary = KeptSummary(through, text, now())
        self._write(summary_statement(self._number, self.summary))
        self.stale = True
        while self.turns and self.turns[0].number <= through:
            self.turns.popleft()

    @property
    def carries_on(self) -> bool:
        """Whether the user's last words have no reply yet. If so, the model's history is not
        complete."""
        return unanswered_end(list(self.turns)[-1:])

    def refreshes(self) -> bool:
        """Return whether the caller must now write the language model's history anew. Right after
        True, the next result is False."""
        due = self.stale and not self.carries_on
        self.stale = self.stale and not due
        return due

    def _look(self, exchange: SpokenExchange) -> None:
        turn, chars = self._turn(exchange), len(exchange.heard)
        known = self._sounding
        if known is None or (known.turn.replied, known.turn.calls) != (turn.replied, turn.calls):
            self._write(turn_statement(self._number, turn, chars))
            if known is None or known.turn_id != exchange.turn:
                self._note_skills()
        elif (known.turn.words, known.chars) != (turn.words, chars):
            self._write(heard_statement(self._number, turn.number, turn.words, chars))
        else:
            return
        self._sounding = _Sounding(exchange.turn, turn, chars)

    def _turn(self, exchange: SpokenExchange) -> KeptTurn:
        """Return the exchange as a turn of the store. Its `ended`, `outcome`, `heard` and `kept`
        are not set."""
        known = self._sounding
        at, number = now(), self._next
        if known is not None and known.turn_id == exchange.turn:
            at, number = known.turn.at, known.turn.number
        calls = (
            KeptCall(call.name, dict(call.arguments), result) for call, result in exchange.calls
        )
        return KeptTurn(
            number=number,
            at=at,
            language=exchange.language,
            said=exchange.said,
            replied=exchange.replied,
            calls=tuple(calls),
            words=exchange.words,
        )

    def _note_skills(self) -> None:
        """Write the state of the skills. Facts are written one by one, the rest as one record."""
        assert self._skills is not None, "the session has begun"
        facts, before = self._skills.facts, {fact.number: fact for fact in self._facts}
        present = {fact.number: fact for fact in facts}
        for number in before.keys() - present.keys():
            self._write(strike_statement(self._number, number))
            self.stale = True
        for number, fact in present.items():
            if before.get(number) != fact:
                self._write(fact_statement(self._number, fact))
        self._facts = tuple(facts)
        memory = replace(self._skills.memory(), facts=())
        self._write(skills_statement(self._number, msgspec.msgpack.encode(memory)))


@contextmanager
def kept(path: Path, name: str, tell: Callable[[str], None]) -> Iterator[KeptConversation]:
    """Open the conversation `name` of the store at `path` while the context lasts.

    If the store cannot be used, `tell` gets one line that says so, and nothing is kept. Raises
    VoiceloopError if another process has the conversation open.
    """
    try:
        found, writer = claimed(path, name, tell)
    except StoreUnusable as error:
        tell(f"{error.message}: this conversation is not kept ({error.hint})")
        yield KeptConversation(ResumedConversation(), lambda *statements: None, lambda: "", 0)
        return
    try:
        yield found
    finally:
        writer.close()


def claimed(
    path: Path, name: str, tell: Callable[[str], None]
) -> tuple[KeptConversation, ConversationWriter]:
    """Open the conversation `name` of the store at `path`. Return the conversation and its writer.
    To end the conversation, call the writer's `close`.

    A damaged store is moved away, and `tell` gets one line that says so. Raises StoreUnusable if
    nothing can be kept, and VoiceloopError if the conversation cannot be read or another process
    has it open.
    """
    store = ConversationStore(path, tell)
    try:
        number, resumed = store.claim(name)
    except BaseException:
        store.close()
        raise
    writer = ConversationWriter(store)
    return KeptConversation(resumed, writer.write, lambda: writer.trouble, number), writer
