"""A conversation that is open: it goes on from the store, and its session is written down.

The session reports each exchange that is over. While a reply sounds, the words that were heard are
looked up every few milliseconds. All writing is done by the thread of `writer`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import anyio
import msgspec
from msgspec.structs import replace

from voiceloop.config import Config
from voiceloop.conversations.prompt import past, system_prompt, unanswered_end
from voiceloop.conversations.records import KeptCall, KeptSummary, KeptTurn, ResumedConversation
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
from voiceloop.llm.text.wording import told
from voiceloop.session import Session
from voiceloop.skills.known import Fact
from voiceloop.tools.toolbox import NO_TOOLS, Toolbox
from voiceloop.turn.exchange import SpokenExchange
from voiceloop.turn.skills import Skills, SkillsMemory, offered, prompt, unusable
from voiceloop.types import Past, Tool

logger = logging.getLogger(__name__)

LOOK_S = 0.025
"""Seconds between two looks at how much of a reply was heard."""
MOST_HELD = 500
"""Maximum number of turns that are held in memory."""


class KeptConversation:
    """A conversation that goes on, and is kept.

    Its attributes are what it goes on with, and what of the present turn has been written.
    """

    def __init__(
        self,
        resumed: ResumedConversation,
        write: Callable[..., None],
        trouble: Callable[[], str],
        number: int,
    ) -> None:
        """Go on with `resumed`. `write` takes statements for the conversation `number`; `trouble`
        tells why they are not executed, or is empty."""
        self.turns = deque(resumed.turns, MOST_HELD)
        """The turns that the language model is told word for word, oldest first."""
        self.summary = resumed.summary
        self.changed = anyio.Event()
        """Event that is set, and replaced, when a turn is over."""
        self.stale = False
        """Whether the language model still has a fact that was struck, or turns that were
        condensed."""
        self._resumed = resumed
        self._write = write
        self._trouble = trouble
        self._number = number
        self._next = resumed.next_number
        self._facts: Sequence[Fact] = resumed.facts
        self._skills: Skills | None = None
        self._toolbox = NO_TOOLS
        self._open: tuple[int, KeptTurn, int] | None = None
        """The id of the turn whose reply sounds, what was written of it, and the characters that
        were heard."""

    # ---- beginning

    def skills(self, engines: Engines) -> Skills:
        """Return the skills with what they remember. Timers that are over by now ring soon."""
        self._skills = skills = Skills(paced=engines.tts.paces, keeps=True)
        if self._resumed.skills:
            try:
                skills.recall(msgspec.msgpack.decode(self._resumed.skills, type=SkillsMemory))
            except msgspec.DecodeError as error:
                logger.warning("timers of this conversation cannot be read: %s", error)
        skills.facts = self._facts
        return skills

    def conversation(
        self, llm: Llm, config: Config, at: datetime, toolbox: Toolbox = NO_TOOLS
    ) -> Conversation:
        """Return the conversation of the language model `llm`, with all that was before `at`. The
        model may call the tools in `toolbox` from now on."""
        found = llm.conversation(system=told(llm.system, at, config.place))
        self._toolbox = NO_TOOLS if unusable(found, config, toolbox) else toolbox
        found.rewrite(*self.prompt(llm, config, at))
        return found

    def prompt(
        self, llm: Llm, config: Config, at: datetime
    ) -> tuple[str, list[Past], Sequence[Tool]]:
        """Return the system prompt, the exchanges and the tools that the model is told.

        The starter model is told neither facts nor summaries: it was trained without them.
        """
        system = self.remembered(prompt(llm.system, at, config, self._toolbox), config)
        return system, past(tuple(self.turns)), offered(config, self._toolbox)

    def remembered(self, system: str, config: Config) -> str:
        """Return the system prompt `system` with the facts and the summary, if the model of
        `config` is told them."""
        if config.llm.answers_little:
            return system
        facts = self._skills.facts if self._skills else self._facts
        return system_prompt(system, facts, self.summary.text if self.summary else "")

    def greeting(self, engines: Engines) -> str:
        """Return what is said at the beginning, if something was before."""
        spoken = language(engines.tts.language())
        return spoken.welcome if self.turns or self.summary else ""

    # ---- while the session runs

    def note(self, exchange: SpokenExchange) -> None:
        """Keep an exchange that is over."""
        turn = self._turn(exchange)
        turn = replace(turn, ended=now(), outcome=exchange.outcome)
        turn = replace(turn, heard=exchange.heard, kept=exchange.kept)
        self._write(turn_statement(self._number, turn, len(exchange.heard)))
        self._open = None
        self._next = turn.number + 1
        self.turns.append(turn)
        self._note_skills()
        self.changed.set()
        self.changed = anyio.Event()

    async def follow(self, session: Session, notice: Callable[[str], None]) -> None:
        """Keep what is heard of each reply while it sounds, until cancelled. Trouble with the disk
        is told by one `notice`."""
        told_of = False
        while True:
            if exchange := session.sounding:
                self._look(exchange)
            if not told_of and (trouble := self._trouble()):
                notice(f"this conversation is not kept from here on: {trouble}")
                told_of = True
            await anyio.sleep(LOOK_S)

    def condensed(self, through: int, text: str) -> None:
        """Replace the turns up to the number `through` by a summary; with an empty one, drop
        them."""
        self.summary = KeptSummary(through, text, now())
        self._write(summary_statement(self._number, self.summary))
        self.stale = True
        while self.turns and self.turns[0].number <= through:
            self.turns.popleft()

    @property
    def carries_on(self) -> bool:
        """Whether the user's last words had no reply, so that the model's history is not
        complete."""
        return unanswered_end(list(self.turns)[-1:])

    def refreshes(self) -> bool:
        """Return whether the language model's history is to be written anew. The caller does that
        now, so the next answer is False."""
        due = self.stale and not self.carries_on
        self.stale = self.stale and not due
        return due

    def _look(self, exchange: SpokenExchange) -> None:
        turn, chars = self._turn(exchange), len(exchange.heard)
        known = self._open
        if known is None or known[1].replied != turn.replied or known[1].calls != turn.calls:
            self._write(turn_statement(self._number, turn, chars))
            if known is None or known[0] != exchange.turn:
                self._note_skills()
        elif (known[1].words, known[2]) != (turn.words, chars):
            self._write(heard_statement(self._number, turn.number, turn.words, chars))
        else:
            return
        self._open = exchange.turn, turn, chars

    def _turn(self, exchange: SpokenExchange) -> KeptTurn:
        """Return an exchange as a turn of the store, without its end."""
        known = self._open
        at, number = now(), self._next
        if known is not None and known[0] == exchange.turn:
            at, number = known[1].at, known[1].number
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
        """Write what the skills remember: facts apart from the rest."""
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

    If the store cannot be used, that is told in one line, and nothing is kept. Raises
    VoiceloopError if the conversation is open elsewhere.
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
    """Open the conversation `name` of the store at `path`. Return it with its writer, whose `close`
    ends it.

    A damaged store is set aside, which is told in one line. Raises StoreUnusable if nothing can be
    kept, and VoiceloopError if the conversation is open elsewhere or cannot be read.
    """
    store = ConversationStore(path, tell)
    try:
        number, holder, resumed = store.claim(name)
    except BaseException:
        store.close()
        raise
    writer = ConversationWriter(store.database, number, holder)
    return KeptConversation(resumed, writer.write, lambda: writer.trouble, number), writer
