"""The settings of a session and of a response, which clients change with events.

An update has only the keys that it changes. An absent key keeps its value, in turn detection and
transcription too. But if an update changes the type of turn detection or turns it on, the absent
keys of turn detection get their defaults. This module knows neither what a setting does nor which
voices exist.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from voiceloop.settings.schema import TOLD, Fraction, Object, Settings, changes, instead
from voiceloop.wire.items import RATE, Item, ItemReference, plain

Name = Annotated[str, Meta(max_length=64)]
STOCK_VOICES = frozenset(
    "default alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse".split()
)
"""Names that mean the server's own voice, unless it has a voice of this name: `default`, and the
voices of OpenAI's API, which its clients request from any server."""
Modalities = tuple[Literal["audio", "text"]]
"""Either audio or text, not both: audio comes with a transcript anyway."""
Instructions = Annotated[str, Meta(max_length=100_000)]
MOST_INPUT = 256
"""Maximum number of items in the `input` of a response."""
OutputTokens = Annotated[int, Meta(ge=1, le=4096)] | Literal["inf"]
Milliseconds = Annotated[int, Meta(ge=0, le=60_000)]


class PcmFormat(Settings, frozen=True, tag="audio/pcm"):
    """PCM16: 16 bits, little-endian, mono."""

    sample_bytes: ClassVar = 2

    rate: Literal[24000] = 24000
    """Sample rate, in Hz."""


class PcmuFormat(Settings, frozen=True, tag="audio/pcmu"):
    """G.711 µ-law, as in telephony in North America and Japan: one byte per sample, mono."""

    tunes: ClassVar = {"rate": "it is always 8000"}
    rate: ClassVar = 8000
    sample_bytes: ClassVar = 1


class PcmaFormat(Settings, frozen=True, tag="audio/pcma"):
    """G.711 A-law, as in telephony elsewhere: one byte per sample, mono."""

    tunes: ClassVar = {"rate": "it is always 8000"}
    rate: ClassVar = 8000
    sample_bytes: ClassVar = 1


AudioFormat = PcmFormat | PcmuFormat | PcmaFormat


def length(audio: bytes, format: AudioFormat) -> int:
    """Return the duration of `audio`, whole samples in `format`, as samples at `RATE`."""
    return len(audio) // format.sample_bytes * (RATE // format.rate)


class ServerVad(Settings, frozen=True, tag="server_vad"):
    """Turn detection that ends a turn after a fixed silence."""

    threshold: Fraction = 0.5
    """Speech probability from which audio counts as speech."""
    prefix_padding_ms: Milliseconds = 300
    """Length of the audio that is added to the turn before the start of speech, in milliseconds."""
    silence_duration_ms: Milliseconds = 500
    """Silence that ends the turn, in milliseconds."""
    create_response: bool = True
    """Whether the model answers when the turn ends."""
    interrupt_response: bool = True
    """Whether the user can interrupt a response by speaking."""
    idle_timeout_ms: Annotated[int, Meta(ge=5000, le=30_000)] | None = None
    """Silence after a response, in milliseconds, after which the model speaks again. Null: it never
    does so."""


class SemanticVad(Settings, frozen=True, tag="semantic_vad"):
    """Turn detection that ends a turn soon after words that sound finished, and later after words
    that do not."""

    eagerness: Literal["low", "medium", "high", "auto"] = "auto"
    """How soon to answer: the length of the silence that ends a turn. `low`: at least 1 s if it is
    unclear whether the user has finished, at least 1.2 s after words that ask for more, and at
    least 0.4 s after evidently complete words. `high`: at most 0.3 s if it is unclear, and at most
    0.6 s after words that ask for more. `medium` and `auto`: the server's configuration, by default
    0.5 s if it is unclear, and 1.1 s after words that ask for more."""
    create_response: bool = True
    """Whether the model answers when the turn ends."""
    interrupt_response: bool = True
    """Whether the user can interrupt a response by speaking."""


class Transcription(Settings, frozen=True):
    """Transcripts of the user's words. In a session of type `transcription` they are always on."""

    tunes: ClassVar = {
        "prompt": "the recogniser takes no prompt",
        "keywords": "the recogniser takes no key words",
        "languages": "`language` is one",
        "delay": "words are told as soon as they are settled",
    }

    model: Annotated[str, TOLD] = ""
    """Name of the recogniser. The server's configuration chooses it, whatever is requested."""
    language: Annotated[str, Meta(max_length=16)] | None = None
    """Language that the user speaks: a two-letter code that the server's recogniser knows, with or
    without a region. Null means the language that the server's configuration sets."""


class InputAudio(Settings, frozen=True):
    """Settings of the user's audio."""

    format: AudioFormat = PcmFormat()
    """Format of the audio that is appended from now on."""
    transcription: Transcription | None = None
    """Settings of the transcripts; null means that none are sent."""
    noise_reduction: Annotated[None, TOLD] = None
    """Always null: noise is not reduced, whatever is requested."""
    turn_detection: ServerVad | SemanticVad | None = ServerVad()
    """How the server finds turns. Null: it finds none, and the client itself commits audio and
    requests responses."""


class OutputAudio(Settings, frozen=True):
    """Settings of the audio that the user hears."""

    format: AudioFormat = PcmFormat()
    """Format of the audio of later responses."""
    voice: Name = "default"
    """A voice of the server's synthesizer, e.g. one of those in `voiceloop.voices`. `default` and
    the names of OpenAI's voices mean the server's own voice. The voice may change at any time, for
    later responses."""
    speed: Annotated[float, Meta(ge=0.25, le=1.5)] = 1.0
    """Speed of later responses, as a factor of the pace that the server's configuration sets. The
    user may change it further by asking for it. Some synthesizers have one pace only, and refuse
    any other."""


class Audio(Settings, frozen=True):
    """Settings of the audio in both directions."""

    input: InputAudio = InputAudio()
    """Settings of the user's audio."""
    output: OutputAudio = OutputAudio()
    """Settings of the audio that the user hears."""


class FunctionTool(Object, frozen=True):
    """A function that the model may call."""

    tunes: ClassVar = {"strict": "the model is not held to the schema"}

    name: Name
    """Name by which the model calls the function."""
    type: Literal["function"] = "function"
    """Always `function`, the only kind of tool. A client with an MCP server offers the tools of
    that server as functions, and calls them itself."""
    description: Annotated[str, Meta(max_length=10_000)] = ""
    """What the function does and when to call it."""
    parameters: Mapping[str, object] = {}
    """JSON schema of its arguments."""


MOST_TOOLS = 128
"""Maximum number of functions that the model may call."""
Tools = Annotated[tuple[FunctionTool, ...], Meta(max_length=MOST_TOOLS)]


class NamedFunction(Object, frozen=True, tag="function"):
    """The function that each response must call."""

    name: Name
    """Name of the function."""


ToolChoice = Literal["auto", "none", "required"] | NamedFunction


class Reasoning(Settings, frozen=True):
    """How the model reasons before it replies."""

    effort: Literal["minimal", "low", "medium", "high", "xhigh"] | None = None
    """How much the model reasons. A language model on another server gets it as
    `reasoning_effort`, unless that server refuses it. Models in this server's process do not
    reason. Null: as the server's configuration says."""


class LlmServer(Object, frozen=True):
    """A language-model server that runs on the same machine as this server."""

    id: str
    """Id to send in `voiceloop.llm_server.use`."""
    name: str
    """Name for people, such as `Ollama`."""
    models: tuple[str, ...]
    """Names of the server's models that can chat. Without another choice, the first one generates
    the replies."""
    used: bool = False
    """Whether the first of `models` generates the replies now."""


class Voice(Object, frozen=True):
    """A voice that can be requested at any time in a conversation."""

    name: str
    """The value of `audio.output.voice` that requests it."""
    label: str
    """Description for people, such as `Heart, American woman`."""
    language: str
    """Code of its language, such as `en-us`; empty if unknown."""
    language_name: str
    """Name of its language without the region, such as `English`; empty if unknown."""


class Extensions(Settings, frozen=True):
    """The additions of voiceloop to the protocol. A client turns on the ones that it wants.

    The fields from `voices` on are set by the server, and tell the client what there is.
    """

    binary_audio: bool = False
    """Send audio of responses in binary messages instead of `response.output_audio.delta`."""
    tentative_words: bool = False
    """Send `voiceloop.transcript` with the user's words while they may still change."""
    traces: bool = False
    """Send `voiceloop.trace` with the record of each turn."""
    pause: bool = False
    """Send `voiceloop.output.paused` when the user may be interrupting, and `.resumed` if the
    user was not."""
    clauses: bool = False
    """Send `voiceloop.output.clause` with the position of each clause in the audio."""
    resume: bool = False
    """Send `voiceloop.session.token`, with which the client can resume the session on a new
    connection."""
    voices: Annotated[tuple[Voice, ...], TOLD] = ()
    """Voices that the server offers; `GET /v1/voices/NAME` returns a sample of one."""
    models: Annotated[tuple[str, ...], TOLD] = ()
    """Names of the models that recognise, reply and speak."""
    examples: Annotated[tuple[str, ...], TOLD] = ()
    """Questions that the user might ask first."""
    notes: Annotated[tuple[str, ...], TOLD] = ()
    """Notes about the models that the user should read."""
    languages: Annotated[tuple[str, ...], TOLD] = ()
    """Codes of the languages that the recogniser knows; `audio.input.transcription.language` takes
    one of them."""
    llm_servers: Annotated[tuple[LlmServer, ...], TOLD] = ()
    """Other servers that can generate the replies, or do so now. Only the server's own page gets
    them, and only if it was opened on the server's machine."""
    conversations: Annotated[tuple[str, ...], TOLD] | UnsetType = UNSET
    """Names of conversations that are kept on the server's machine, the latest first: at most 50.
    The key is absent if the server runs without `--conversations`, or if the client may not get
    `llm_servers`."""
    conversation: Annotated[str, TOLD] | UnsetType = UNSET
    """Name under which this conversation is kept; absent if it is not kept."""


TUNES = {
    "temperature": "the server's configuration sets it",
}
"""Keys of a session or a response that are accepted and have no effect, and the reason for each."""


class ResponseOutput(Settings, frozen=True):
    """Settings of the audio of one response."""

    tunes: ClassVar = {"speed": "the server's configuration sets it"}

    format: AudioFormat = PcmFormat()
    """Format of the audio."""
    voice: Name = "default"
    """A voice of the server's synthesizer, as in the session's settings."""


class ResponseAudio(Settings, frozen=True):
    """The audio settings of one response."""

    output: ResponseOutput = ResponseOutput()
    """Settings of the audio that the user hears."""


class ResponseSettings(Settings, frozen=True):
    """The settings of one response. The fields are those of the API.

    In `response.create` absent keys have the session's values."""

    unsupported: ClassVar = {
        "prompt": "send the text as `instructions`: prompts are not stored",
        "modalities": "it is `output_modalities`",
        "voice": "it is `audio.output.voice`",
        "max_response_output_tokens": "it is `max_output_tokens`",
    }
    tunes: ClassVar = TUNES

    conversation: Literal["auto", "none"] = "auto"
    """`none` keeps the response out of the conversation."""
    input: Annotated[tuple[Item | ItemReference, ...], Meta(max_length=MOST_INPUT)] | None = None
    """Items that the model reads instead of the conversation: new items, which do not become part
    of the conversation, and references to items of it. Null: the model reads the conversation."""
    instructions: Instructions = ""
    """System prompt."""
    output_modalities: Modalities = ("audio",)
    """Either `audio`, with a transcript, or `text` alone."""
    audio: ResponseAudio = ResponseAudio()
    """Voice and format."""
    tools: Tools = ()
    """Functions that the model may call."""
    tool_choice: ToolChoice = "auto"
    """Whether the model calls functions, as in the session's settings."""
    parallel_tool_calls: bool = True
    """Whether the model may call several functions in the response, as in the session's
    settings."""
    reasoning: Reasoning = Reasoning()
    """How the model reasons."""
    max_output_tokens: OutputTokens = "inf"
    """Maximum length of the response, in tokens; the tokens of calls count too."""
    metadata: (
        Annotated[Mapping[Name, Annotated[str, Meta(max_length=512)]], Meta(max_length=16)] | None
    ) = None
    """Keys and texts that the client gives; events with the response repeat them."""


class SessionSettings(Settings, frozen=True):
    """The settings of a session. `session.created` and `session.updated` have all of them.

    The fields are those of the API.
    """

    unsupported: ClassVar = {
        "modalities": "it is `output_modalities`",
        "voice": "it is `audio.output.voice`",
        "speed": "it is `audio.output.speed`",
        "turn_detection": "it is `audio.input.turn_detection`",
        "input_audio_format": "it is `audio.input.format`",
        "input_audio_transcription": "it is `audio.input.transcription`",
        "output_audio_format": "it is `audio.output.format`",
        "max_response_output_tokens": "it is `max_output_tokens`",
    }
    tunes: ClassVar = TUNES | {"input_audio_noise_reduction": "noise is not reduced"}

    type: Literal["realtime", "transcription"] = "realtime"
    """`realtime` is a conversation. In `transcription` the user's words are transcribed and never
    answered. At the address `/v1/realtime?intent=transcription` a session is of this type from the
    start. Otherwise the type can be set once, before the first item and the first response."""
    id: Annotated[str, TOLD] = ""
    """Id of the session."""
    object: Annotated[Literal["realtime.session"], TOLD] = "realtime.session"
    """Always `realtime.session`."""
    model: Annotated[str, TOLD] = ""
    """Name of the language model. The server's configuration chooses it, whatever is requested."""
    output_modalities: Modalities = ("audio",)
    """Either `audio`, with a transcript, or `text` alone."""
    instructions: Instructions = ""
    """System prompt."""
    audio: Audio = Audio()
    """Settings of the audio in both directions."""
    tools: Tools = ()
    """Functions that the model may call."""
    tool_choice: ToolChoice = "auto"
    """`auto`: the model decides whether to call functions, and which. `none`: it is given no
    functions and calls none. `required`: it says nothing, and calls one of the functions. An object
    with the name of a function: it says nothing, and calls that function. This holds for every
    response, also for one after the output of a function."""
    parallel_tool_calls: bool = True
    """Whether the model may call several functions in one response. If not, a response ends with
    its first call."""
    reasoning: Reasoning = Reasoning()
    """How the model reasons."""
    max_output_tokens: OutputTokens = "inf"
    """Maximum length of a response, in tokens; the tokens of calls count too."""
    truncation: Annotated[Literal["auto"], TOLD] = "auto"
    """Always `auto`: the oldest turns leave the model's context when it is full."""
    include: Annotated[None, TOLD] = None
    """Always null: nothing more is included, whatever is requested."""
    prompt: Annotated[None, instead("send the text as `instructions`: prompts are not stored")] = (
        None
    )
    """Always null: prompts are not stored."""
    tracing: Annotated[None, TOLD] = None
    """Always null: nothing is traced elsewhere, whatever is requested."""
    voiceloop: Extensions = Extensions()
    """The additions of voiceloop to the protocol."""

    def response(self, overrides: ResponseChanges | None = None) -> ResponseSettings:
        """Return the settings of a response. `overrides` are the settings in its `response.create`;
        they replace those of the session."""
        base = ResponseSettings(
            instructions=self.instructions,
            output_modalities=self.output_modalities,
            audio=ResponseAudio(ResponseOutput(self.audio.output.format, self.audio.output.voice)),
            tools=self.tools,
            tool_choice=self.tool_choice,
            parallel_tool_calls=self.parallel_tool_calls,
            reasoning=self.reasoning,
            max_output_tokens=self.max_output_tokens,
        )
        return base if overrides is None else base.updated(overrides)


class TranscriptionAudio(Object, frozen=True):
    """The audio settings of a session of type `transcription`. Such a session has only input."""

    input: InputAudio
    """Settings of the user's audio. In its turn detection `create_response`, `interrupt_response`
    and `idle_timeout_ms` are off, whatever is requested."""


class TranscriptionSession(Object, frozen=True):
    """The settings of a session of type `transcription`, as they are sent to the client.

    They are some of the settings of a conversation. Changes of the others are refused, unless only
    the server sets them: then a change has no effect.
    """

    id: str
    """Id of the session."""
    audio: TranscriptionAudio
    """Settings of the user's audio."""
    voiceloop: Extensions
    """The additions of voiceloop to the protocol. Additions to responses have no effect here."""
    type: Literal["transcription"] = "transcription"
    """Always `transcription`."""
    object: Literal["realtime.transcription_session"] = "realtime.transcription_session"
    """Always `realtime.transcription_session`."""
    include: None = None
    """Always null: nothing more is included, whatever is requested."""


def as_told(settings: SessionSettings) -> SessionSettings | TranscriptionSession:
    """Return the settings in the form in which they are sent to the client."""
    if settings.type == "realtime":
        return settings
    return TranscriptionSession(
        settings.id, TranscriptionAudio(settings.audio.input), settings.voiceloop
    )


def only_transcribing(settings: SessionSettings, recogniser: str) -> SessionSettings:
    """Return a copy of `settings` for a session of type `transcription`.

    Transcripts are on, and nothing is answered. `recogniser` is the name of the recogniser.
    """
    heard = settings.audio.input
    detection = heard.turn_detection
    if detection is not None:
        detection = replace(detection, create_response=False, interrupt_response=False)
    if isinstance(detection, ServerVad):
        detection = replace(detection, idle_timeout_ms=None)
    heard = replace(
        heard,
        transcription=heard.transcription or Transcription(recogniser),
        turn_detection=detection,
    )
    audio = replace(settings.audio, input=heard)
    return replace(settings, type="transcription", audio=audio)


if TYPE_CHECKING:  # only `updated` needs to know that absent keys are UNSET
    SessionChanges = SessionSettings
    ResponseChanges = ResponseSettings
else:
    SessionChanges = changes(SessionSettings)
    ResponseChanges = changes(ResponseSettings)


def size(settings: SessionSettings | ResponseSettings) -> int:
    """Return the size of the instructions, the tools and the input, in bytes of UTF-8."""
    given = settings.input if isinstance(settings, ResponseSettings) else None
    written = (json.dumps(plain(one), ensure_ascii=False) for one in (settings.tools, given or ()))
    return len(settings.instructions.encode()) + sum(len(one.encode()) for one in written)
