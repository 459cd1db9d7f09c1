"""The state of one client's conversation, across all of its connections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from msgspec import UNSET, Struct, UnsetType, msgpack, structs

from voiceloop.conversations.keeping import KeptConversation
from voiceloop.dialogue.state import Options
from voiceloop.engines import Conversation, Engines, Llm
from voiceloop.errors import EngineError, ProtocolError
from voiceloop.languages import language
from voiceloop.server.ops.logs import VISIT
from voiceloop.server.session import choices
from voiceloop.server.session.history import items_of
from voiceloop.server.session.offers import OpenedConversation
from voiceloop.settings.config import Config
from voiceloop.settings.schema import is_given
from voiceloop.tools.toolbox import NO_TOOLS, Toolbox
from voiceloop.turn.skills import Skills, SkillsMemory, begun, offered, prompt, unusable
from voiceloop.types import Tool
from voiceloop.wire.items import Item, NewId
from voiceloop.wire.ledger import Ledger, LedgerState
from voiceloop.wire.settings import (
    Audio,
    Extensions,
    LlmServer,
    OutputAudio,
    ResponseSettings,
    SessionChanges,
    SessionSettings,
    only_transcribing,
)

MOST_TOLD = 100
"""Maximum number of turns of a kept conversation that are sent to a client: the latest turns."""


class ModelContext(NamedTuple):
    """The instructions and functions that the language model gets besides the conversation."""

    instructions: str
    tools: tuple[Tool, ...]
    required: tuple[str, ...]
    """Names of the functions of which every reply must call one; empty if replies may speak."""
    effort: str | None
    """How much the model reasons; None for the configured amount."""
    parallel_calls: bool
    """Whether one reply may call several functions."""


class Snapshot(Struct, frozen=True):
    """A conversation between two turns, as a shared store keeps it.

    Sound is left out, and so are the caches of the language model: if the client returns to another
    server, the model there reads the conversation again. Servers that share a store are configured
    alike. If a server lacks something, such as the voice, it uses its own.
    """

    id: str
    settings: SessionSettings
    ledger: LedgerState
    skills: SkillsMemory
    language: str
    """Code of the language that the user spoke last."""
    began: datetime
    typed: bool


class ClientConversation:
    """The conversation of one client: its models, settings, items and skills.

    It outlives a connection: the client's next connection continues it, so its attributes are all
    that has to last. The state of a single connection is in `ClientSession`.
    """

    def __init__(
        self,
        engines: Engines,
        config: Config,
        conversation: Conversation,
        new_id: NewId,
        began: datetime,
        toolbox: Toolbox = NO_TOOLS,
        opened: OpenedConversation | None = None,
    ) -> None:
        """`conversation` began at the date and time `began`. The dialogue owns it, and `close`
        frees it. The server's own assistant may call the tools in `toolbox`. With `opened`, the
        dialogue goes on with that conversation."""
        self.opened = opened
        self.toolbox = toolbox
        self._usable = NO_TOOLS if unusable(conversation, config, toolbox) else toolbox
        """The tools in `toolbox`, if the language model can be told about them; otherwise none."""
        self.engines = engines
        self.config = config
        self.conversation = conversation
        self.new_id = new_id
        self.settings = SessionSettings(
            id=new_id("sess"),
            model=engines.llm.name,
            instructions=engines.llm.system,
            audio=Audio(output=OutputAudio(voice=engines.tts.voice)),
            voiceloop=choices.about(
                config, engines, Extensions(conversation=opened.name if opened else UNSET)
            ),
        )
        self.ledger = Ledger(new_id, max_bytes=config.server.conversation_bytes)
        self.id = new_id("conv")
        self.visit = VISIT.get()
        """Number that the log uses for the latest client session with this dialogue."""
        self.language = language(config.asr.language)
        """Language of the user after the latest turn; at first the configured one."""
        self.skills = Skills(paced=engines.tts.paces)
        if self.kept is not None:
            self.skills = self.kept.skills(engines)
            told = items_of(tuple(self.kept.turns)[-MOST_TOLD:], new_id)
            self.ledger.restore(LedgerState(told, {}))
        self.typed = self.kept is not None
        """Whether the type of the session is fixed, so that the client cannot change it any
        more."""
        self.began = began
        """Date and time at which the conversation began. The system prompt of the server's own
        assistant contains them."""

    @property
    def kept(self) -> KeptConversation | None:
        """The kept conversation with which the dialogue goes on; None if it is not kept."""
        return self.opened.kept if self.opened else None

    @property
    def transcribes(self) -> bool:
        """Whether the session gives transcripts only."""
        return self.settings.type == "transcription"

    def transcribe(self) -> None:
        """Make this a session of type `transcription` from the beginning."""
        self.settings = only_transcribing(self.settings, self.engines.asr.name)
        self.typed = True

    def check_responds(self) -> None:
        """Raise ProtocolError if the session gives no responses."""
        if self.transcribes:
            raise ProtocolError(
                "a session of type `transcription` gives no responses",
                "open another connection for a conversation",
                code="unsupported_event",
                param="type",
            )

    def offer(
        self,
        *,
        llm_servers: tuple[LlmServer, ...] = (),
        conversations: tuple[str, ...] | UnsetType = UNSET,
    ) -> None:
        """Set what the client may choose from: language-model servers, and kept conversations."""
        offered = structs.replace(
            self.settings.voiceloop, llm_servers=llm_servers, conversations=conversations
        )
        self.settings = structs.replace(self.settings, voiceloop=offered)

    def think_with(self, llm: Llm, config: Config) -> None:
        """Continue with another language model, which has read nothing yet. The caller must have
        closed `conversation` before, which belongs to the former model."""
        former, self.config = self.engines.llm, config
        self.engines = replace(self.engines, llm=llm)
        begin = self.kept.conversation if self.kept else begun
        self.conversation = begin(llm, config, self.began, self.toolbox)
        unfit = unusable(self.conversation, config, self.toolbox)
        self._usable = NO_TOOLS if unfit else self.toolbox
        unchanged = self.settings.instructions == former.system
        self.settings = structs.replace(
            self.settings,
            model=llm.name,
            instructions=llm.system if unchanged else self.settings.instructions,
            voiceloop=choices.about(config, self.engines, self.settings.voiceloop),
        )

    @property
    def asked_language(self) -> str:
        """The user's language: the one that the client has set, else the configured one. It is a
        code, or `auto` for detection."""
        transcription = self.settings.audio.input.transcription
        return (transcription and transcription.language) or self.config.asr.language

    def update(self, changes: SessionChanges, refuse: Callable[[ProtocolError], None]) -> None:
        """Apply the client's changes. `refuse` is called with an error for each invalid change."""
        former, self.settings = self.settings, self.settings.updated(changes)
        self._hold_type(changes, former, refuse)
        holds = (self._hold_size, self._hold_choice, self._hold_voice, self._hold_speed)
        for held in (*holds, self._hold_language):
            try:
                held(former)
            except ProtocolError as error:
                refuse(error)

    def read(self, settings: SessionSettings | ResponseSettings) -> list[Item]:
        """Return the items that the language model reads for a response with these settings: their
        `input`, or else the whole conversation. Raises ProtocolError for unknown ids."""
        given = settings.input if isinstance(settings, ResponseSettings) else None
        return self.ledger.items if given is None else self.ledger.quoted(given, "response.input")

    def check_room(self, settings: SessionSettings | ResponseSettings, param: str) -> None:
        """Raise ProtocolError, which names `param`, if instructions and tools leave no room for a
        conversation in the language model's context."""
        seen = self.seen(settings)
        try:
            found = self.conversation.opening(seen.instructions, seen.tools)
        except EngineError as error:  # a template may refuse anything
            raise ProtocolError(error.message, error.hint, param=param) from error
        if found is not None and found[0] > found[1]:
            raise ProtocolError(
                f"instructions and tools take {found[0]} tokens, and {found[1]} are the most",
                "give fewer, or start the server with a larger --llm.context",
                param=param,
            )

    def _hold_type(
        self,
        changes: SessionChanges,
        former: SessionSettings,
        refuse: Callable[[ProtocolError], None],
    ) -> None:
        """Undo and refuse a change of the type if the type is fixed. In a session of type
        `transcription`, also undo and refuse changes that have no meaning there."""
        if self.settings.type != former.type and (self.typed or self.ledger.items):
            self.settings = structs.replace(self.settings, type=former.type)
            refuse(
                ProtocolError(
                    f"session.type is `{former.type}`, and cannot change any more",
                    "open another connection, and send it first",
                    param="session.type",
                )
            )
        self.typed = self.typed or is_given(changes.type)
        if not self.transcribes:
            return
        for error in choices.not_transcribing(changes):
            refuse(error)
        output = structs.replace(self.settings.audio, output=former.audio.output)
        kept = {name: getattr(former, name) for name in choices.OF_RESPONSES}
        changed = structs.replace(self.settings, audio=output, **kept)
        self.settings = only_transcribing(changed, self.engines.asr.name)

    def _hold_size(self, former: SessionSettings) -> None:
        """If the new instructions and tools are too large, restore the `former` ones and raise
        ProtocolError."""
        named = "session" if self.settings.tools != former.tools else "session.instructions"
        if self.settings.instructions == former.instructions:
            named = "session.tools"
        try:
            choices.check_size(self.settings, self.config.server, named)
            if self.seen(self.settings) != self.seen(former):
                self.check_room(self.settings, named)
        except ProtocolError:
            kept = {"instructions": former.instructions, "tools": former.tools}
            self.settings = structs.replace(self.settings, **kept)
            raise

    def _hold_choice(self, former: SessionSettings) -> None:
        """If the requested `tool_choice` is impossible, set it to `auto` and raise
        ProtocolError."""
        try:
            choices.check_choice(self.settings, self.conversation, "session")
        except ProtocolError:
            self.settings = structs.replace(self.settings, tool_choice="auto")
            raise

    def _hold_voice(self, former: SessionSettings) -> None:
        """Choose the requested voice. If it does not exist, restore the `former` one and raise
        ProtocolError."""
        try:
            self.settings = choices.with_voice(self.settings, self.engines.tts, "session")
        except ProtocolError:
            self.settings = choices.with_output(self.settings, voice=former.audio.output.voice)
            raise

    def _hold_speed(self, former: SessionSettings) -> None:
        """Speak at the requested speed if it is a new one. If the synthesizer has one pace only,
        restore the `former` speed and raise ProtocolError."""
        speed = self.settings.audio.output.speed
        if speed == former.audio.output.speed:
            return  # the user may have asked for another one since then
        if not self.engines.tts.paces:
            self.settings = choices.with_output(self.settings, speed=former.audio.output.speed)
            raise ProtocolError(
                "this voice has one speed only",
                "leave audio.output.speed at 1",
                param="session.audio.output.speed",
            )
        self.skills.know(voice=replace(self.skills.voice, speed=speed))

    def _hold_language(self, former: SessionSettings) -> None:
        """Choose the requested language, and set the name of the recogniser. If the recogniser does
        not know the language, restore the `former` one and raise ProtocolError."""
        heard, before = self.settings.audio.input, former.audio.input.transcription
        if heard.transcription is None:
            return
        held = before.language if before else None
        try:
            held = choices.language(self.engines.asr, heard.transcription.language)
        finally:
            named = {"language": held, "model": self.engines.asr.name}
            transcription = structs.replace(heard.transcription, **named)
            heard = structs.replace(heard, transcription=transcription)
            audio = structs.replace(self.settings.audio, input=heard)
            self.settings = structs.replace(self.settings, audio=audio)

    def options(self, settings: SessionSettings | ResponseSettings) -> Options:
        """Return the options of a reply with these settings."""
        rules = self.config.llm.skills != "none" and self._own(settings)
        return choices.options(settings, skills=rules, own_tools=self._own(settings))

    def seen(self, settings: SessionSettings | ResponseSettings) -> ModelContext:
        """Return the instructions and functions that the model gets with these settings. If the
        server's own assistant replies, as `_own` decides, they also contain the date, the time, the
        place, the server's own tools, and the facts and the summary of a kept conversation."""
        manner = settings.reasoning.effort, settings.parallel_tool_calls
        if not self._own(settings):
            tools, required = choices.offered(settings), choices.required(settings)
            return ModelContext(settings.instructions, tools, required, *manner)
        system = prompt(
            self.engines.llm, settings.instructions, self.began, self.config, self._usable
        )
        if self.kept is not None:
            system = self.kept.remembered(system, self.config)
        return ModelContext(system, tuple(offered(self.config, self._usable)), (), *manner)

    def _own(self, settings: SessionSettings | ResponseSettings) -> bool:
        """Return whether the server's own assistant replies. It does if the settings have the
        server's instructions, and no functions that the model may call."""
        usual = settings.instructions == self.engines.llm.system
        return usual and not choices.offered(settings)

    def snapshot(self) -> bytes:
        """Return the conversation as it is now, for `restore`. Items in progress are left out."""
        offered = structs.replace(
            self.settings.voiceloop,
            **dict.fromkeys(("voices", "models", "examples", "notes", "llm_servers"), ()),
            conversations=UNSET,
        )
        settings = structs.replace(self.settings, voiceloop=offered)
        taken = Snapshot(
            *(self.id, settings, self.ledger.state(), self.skills.memory()),
            *(self.language.code, self.began, self.typed),
        )
        return msgpack.encode(taken)

    def restore(self, state: bytes) -> None:
        """Restore the conversation of the snapshot `state` into this new one.

        Raises msgspec.DecodeError if `state` does not have the form of a `Snapshot`.
        """
        taken = msgpack.decode(state, type=Snapshot)
        own = self.settings
        settings = structs.replace(
            taken.settings,
            model=own.model,
            voiceloop=choices.about(self.config, self.engines, taken.settings.voiceloop),
        )
        try:
            settings = choices.with_voice(settings, self.engines.tts, "session")
        except ProtocolError:
            settings = choices.with_output(settings, voice=own.audio.output.voice)
        self.id, self.settings, self.typed = taken.id, settings, taken.typed
        self.ledger.restore(taken.ledger)
        self.skills.recall(taken.skills)
        self.language, self.began = language(taken.language), taken.began

    def close(self) -> None:
        """Free the language model's caches. Call this on the thread of the model."""
        self.conversation.close()
