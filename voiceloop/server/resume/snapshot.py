"""A conversation as a shared store keeps it: the settings, the items, and what the skills know.

Sound is left out, and so are the caches of the language model: if the client returns to another
server, the model there reads the conversation again. Servers that share a store are configured
alike. If a server lacks something, such as the voice, it uses its own.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from voiceloop.errors import ProtocolError
from voiceloop.languages import language
from voiceloop.server.session import choices
from voiceloop.turn.skills import SkillsMemory
from voiceloop.wire.ledger import LedgerState
from voiceloop.wire.settings import SessionSettings

if TYPE_CHECKING:
    from voiceloop.server.session.client_conversation import ClientConversation


class Snapshot(Struct, frozen=True):
    """The state of a conversation between two turns."""

    id: str
    settings: SessionSettings
    ledger: LedgerState
    skills: SkillsMemory
    language: str
    """Code of the language that the user spoke last."""
    began: datetime
    typed: bool


def snapshot(dialogue: ClientConversation) -> bytes:
    """Return the conversation as it is now. Items in progress are left out."""
    offered = replace(
        dialogue.settings.voiceloop,
        **dict.fromkeys(("voices", "models", "examples", "notes", "llm_servers"), ()),
        conversations=UNSET,
    )
    taken = Snapshot(
        dialogue.id,
        replace(dialogue.settings, voiceloop=offered),
        dialogue.ledger.state(),
        dialogue.skills.memory(),
        dialogue.language.code,
        dialogue.began,
        dialogue.typed,
    )
    return msgspec.msgpack.encode(taken)


def restore(state: bytes, dialogue: ClientConversation) -> None:
    """Restore the conversation of the snapshot `state` into a new `dialogue`.

    Raises msgspec.DecodeError if `state` does not have the form of a `Snapshot`.
    """
    taken = msgspec.msgpack.decode(state, type=Snapshot)
    own, tts = dialogue.settings, dialogue.engines.tts
    settings = replace(
        taken.settings,
        model=own.model,
        voiceloop=choices.about(dialogue.config, dialogue.engines, taken.settings.voiceloop),
    )
    try:
        settings = choices.with_voice(settings, tts, "session")
    except ProtocolError:
        settings = choices.with_output(settings, voice=own.audio.output.voice)
    dialogue.id = taken.id
    dialogue.settings = settings
    dialogue.ledger.restore(taken.ledger)
    dialogue.skills.recall(taken.skills)
    dialogue.language = language(taken.language)
    dialogue.began = taken.began
    dialogue.typed = taken.typed
