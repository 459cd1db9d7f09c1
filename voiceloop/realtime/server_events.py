"""Everything that the server says."""

from __future__ import annotations

from typing import Any, get_args

from voiceloop.realtime.extensions import (
    OutputPaused,
    OutputResumed,
    SessionResumed,
    SessionToken,
    TentativeTranscript,
    TraceTold,
)
from voiceloop.realtime.response_events import (
    ArgumentsDelta,
    ArgumentsDone,
    ContentPartAdded,
    ContentPartDone,
    OutputAudioDelta,
    OutputAudioDone,
    OutputItemAdded,
    OutputItemDone,
    OutputTextDelta,
    OutputTextDone,
    OutputTranscriptDelta,
    OutputTranscriptDone,
    ResponseCreated,
    ResponseDone,
)
from voiceloop.realtime.session_events import (
    Error,
    InputCleared,
    InputCommitted,
    InputSpeechStarted,
    InputSpeechStopped,
    InputTimeout,
    ItemAdded,
    ItemDeleted,
    ItemDone,
    ItemRetrieved,
    ItemTruncated,
    SessionCreated,
    SessionUpdated,
    TranscriptionCompleted,
    TranscriptionDelta,
    TranscriptionFailed,
)
from voiceloop.schema import tag_of

ServerEvent = (
    Error
    | SessionCreated
    | SessionUpdated
    | ItemAdded
    | ItemDone
    | ItemRetrieved
    | ItemDeleted
    | ItemTruncated
    | TranscriptionDelta
    | TranscriptionCompleted
    | TranscriptionFailed
    | InputSpeechStarted
    | InputSpeechStopped
    | InputCommitted
    | InputCleared
    | InputTimeout
    | ResponseCreated
    | OutputItemAdded
    | ContentPartAdded
    | OutputAudioDelta
    | OutputTranscriptDelta
    | OutputTextDelta
    | ArgumentsDelta
    | OutputAudioDone
    | OutputTranscriptDone
    | OutputTextDone
    | ArgumentsDone
    | ContentPartDone
    | OutputItemDone
    | ResponseDone
    | TentativeTranscript
    | TraceTold
    | OutputPaused
    | OutputResumed
    | SessionToken
    | SessionResumed
)
SERVER_EVENTS: dict[str, Any] = {tag_of(kind): kind for kind in get_args(ServerEvent)}
"""Every event that the server can send, by type."""
