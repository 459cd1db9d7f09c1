"""What a session can be told about itself: `session.update`, and the overrides of one response.

An update says only what it changes. Within turn detection and transcription too a key that is
absent keeps its value; where the type of turn detection changes, or it was off, the others begin
from their defaults. This module knows neither what a setting does nor which voices there are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta
from msgspec.structs import replace

from voiceloop.schema import TOLD, Fraction, Object, Settings, changes, instead
from voiceloop.wire.items import Item, ItemReference
from voiceloop.wire.server_events import plain
from voiceloop.wire.sound import RATE

Name = Annotated[str, Meta(max_length=64)]
STOCK_VOICES = frozenset(
    "default alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse".split()
)
"""Voices that stock clients ask for without knowing the server."""
Modalities = tuple[Literal["audio", "text"]]
"""One of both: speech comes with a transcript anyway."""
Instructions = Annotated[str, Meta(max_length=100_000)]
MOST_INPUT = 256
"""Items that a response can be given of its own."""
OutputTokens = Annotated[int, Meta(ge=1, le=4096)] | Literal["inf"]
Milliseconds = Annotated[int, Meta(ge=0, le=60_000)]


class PcmFormat(Settings, frozen=True, tag="audio/pcm"):
    """PCM16: 16 bits, little-endian, mono."""

    sample_bytes: ClassVar = 2

    rate: Literal[24000] = 24000
    """Hertz."""


class PcmuFormat(Settings, frozen=True, tag="audio/pcmu"):
    """G.711 in µ-law, as telephones have it in North America and Japan: a byte a sample, mono."""

    tunes: ClassVar = {"rate": "it is always 8000"}
    rate: ClassVar = 8000
    sample_bytes: ClassVar = 1


class PcmaFormat(Settings, frozen=True, tag="audio/pcma"):
    """G.711 in A-law, as telephones have it elsewhere: a byte a sample, mono."""

    tunes: ClassVar = {"rate": "it is always 8000"}
    rate: ClassVar = 8000
    sample_bytes: ClassVar = 1


AudioFormat = PcmFormat | PcmuFormat | PcmaFormat


def length(audio: bytes, format: AudioFormat) -> int:
    """How many samples at `RATE` take as long as `audio`, whole samples of a format."""
    return len(audio) // format.sample_bytes * (RATE // format.rate)


class ServerVad(Settings, frozen=True, tag="server_vad"):
    """The turn ends after a fixed silence."""

    threshold: Fraction = 0.5
    """Speech probability at which audio counts as speech."""
    prefix_padding_ms: Milliseconds = 300
    """Audio before the beginning of speech that belongs to the turn, in milliseconds."""
    silence_duration_ms: Milliseconds = 500
    """Silence that ends the turn, in milliseconds."""
    create_response: bool = True
    """Answer when the turn ends."""
    interrupt_response: bool = True
    """Let the user interrupt a response by speaking."""
    idle_timeout_ms: Annotated[int, Meta(ge=5000, le=30_000)] | None = None
    """Silence of the user after a response at which the model speaks again, in milliseconds."""


class SemanticVad(Settings, frozen=True, tag="semantic_vad"):
    """The turn ends soon after words that sound finished, and later after others."""

    eagerness: Literal["low", "medium", "high", "auto"] = "auto"
    """How soon to answer: after a second where it is not known whether the user has finished and
    1.2 s after words that ask for more (`low`), after half a second and 1.1 s unless the server is
    configured otherwise (`medium`, `auto`), or after 0.3 and 0.6 s (`high`)."""
    create_response: bool = True
    """Answer when the turn ends."""
    interrupt_response: bool = True
    """Let the user interrupt a response by speaking."""


class Transcription(Settings, frozen=True):
    """The user's words are told too. In a session of type `transcription` that is never off."""

    tunes: ClassVar = {
        "prompt": "the recogniser takes no prompt",
        "keywords": "the recogniser takes no key words",
        "languages": "`language` is one",
        "delay": "words are told as soon as they are settled",
    }

    model: Annotated[str, TOLD] = ""
    """The recogniser; the server's configuration chooses it, whatever is asked for."""
    language: Annotated[str, Meta(max_length=16)] | None = None
    """Language that is spoken, as a two-letter code that the server's recogniser knows, with a
    region or without; null is the server's own."""


class InputAudio(Settings, frozen=True):
    """What the user sends."""

    format: AudioFormat = PcmFormat()
    """Format of the audio that is appended from now on."""
    transcription: Transcription | None = None
    """Null: transcripts are not told."""
    noise_reduction: Annotated[None, TOLD] = None
    """Always null: noise is not reduced, whatever is asked for."""
    turn_detection: ServerVad | SemanticVad | None = ServerVad()
    """How turns are found; null: the client commits the audio and asks for responses itself."""


class OutputAudio(Settings, frozen=True):
    """What the user hears."""

    format: AudioFormat = PcmFormat()
    """Format of the audio of the responses that follow."""
    voice: Name = "default"
    """A voice of the server's synthesizer: a name in `voiceloop.voices`, or another that it has.
    `default` and the names of OpenAI's voices stand for the server's own. It may change
    at any time, for the responses that follow."""
    speed: Annotated[float, TOLD] = 1.0
    """Always 1: the voice has the pace that the server's configuration gives it, whatever is asked
    for."""


class Audio(Settings, frozen=True):
    """Audio in both directions."""

    input: InputAudio = InputAudio()
    """What the user sends."""
    output: OutputAudio = OutputAudio()
    """What the user hears."""


class FunctionTool(Object, frozen=True):
    """A function that the model may call."""

    tunes: ClassVar = {"strict": "the model is not held to the schema"}

    name: Name
    """What the model calls it."""
    type: Literal["function"] = "function"
    """The only kind of tool; servers of tools (MCP) are for the client to ask."""
    description: Annotated[str, Meta(max_length=10_000)] = ""
    """What it does and when to call it."""
    parameters: Mapping[str, object] = {}
    """JSON schema of its arguments."""


Tools = Annotated[tuple[FunctionTool, ...], Meta(max_length=128)]


class NamedFunction(Object, frozen=True, tag="function"):
    """One of the functions."""

    name: Name
    """The function."""


ToolChoice = Literal["auto", "none", "required"] | NamedFunction


class LlmServer(Object, frozen=True):
    """A language-model server that runs on the machine of the server."""

    id: str
    """For `voiceloop.llm_server.use`."""
    name: str
    """What kind of server it is."""
    models: tuple[str, ...]
    """Its models that can chat; the first would reply."""


class Voice(Object, frozen=True):
    """A voice that can be asked for in the middle of a conversation."""

    name: str
    """What `audio.output.voice` calls it."""
    label: str
    """Who speaks, for people: `Heart, American woman`."""
    language: str
    """Code of what it speaks, such as `en-us`; empty where that is not known."""
    language_name: str
    """The same in words, whatever the region: `English`; likewise."""


class Extensions(Settings, frozen=True):
    """What voiceloop adds to the protocol. Whatever can be asked for is off until then."""

    binary_audio: bool = False
    """Audio of responses comes as binary frames instead of `response.output_audio.delta`."""
    tentative_words: bool = False
    """`voiceloop.transcript` tells the user's words while they may still change."""
    traces: bool = False
    """`voiceloop.trace` tells the record of each turn."""
    pause: bool = False
    """A possible interruption pauses the response: `voiceloop.output.paused` and `.resumed`."""
    clauses: bool = False
    """`voiceloop.output.clause` tells where in the audio of a response its words are."""
    resume: bool = False
    """The session can be taken up again on a new connection: `voiceloop.session.token`."""
    voices: Annotated[tuple[Voice, ...], TOLD] = ()
    """Voices that the server offers; `GET /v1/voices/NAME` lets one be heard."""
    models: Annotated[tuple[str, ...], TOLD] = ()
    """What hears, thinks and speaks, by name."""
    examples: Annotated[tuple[str, ...], TOLD] = ()
    """What the user might ask first."""
    notes: Annotated[tuple[str, ...], TOLD] = ()
    """What the user should know of the models."""
    llm_servers: Annotated[tuple[LlmServer, ...], TOLD] = ()
    """Whom else the replies may be had from; told to the server's own page alone, where it was
    opened on the server's machine."""


TUNES = {
    "reasoning": "how long the model reasons is the server's configuration",
    "parallel_tool_calls": "how many tools the model calls in a response is its own choice",
    "temperature": "the server's configuration sets it",
}
"""What is asked for of a session or a response, and nothing comes of."""


class ResponseOutput(Settings, frozen=True):
    """What the user hears of one response."""

    tunes: ClassVar = {"speed": "the server's configuration sets it"}

    format: AudioFormat = PcmFormat()
    """Format of the audio."""
    voice: Name = "default"
    """A voice of the server's synthesizer, as for the session."""


class ResponseAudio(Settings, frozen=True):
    """The audio of one response."""

    output: ResponseOutput = ResponseOutput()
    """What the user hears."""


class ResponseSettings(Settings, frozen=True):
    """One response; in `response.create`, what is absent is as in the session."""

    unsupported: ClassVar = {
        "prompt": "send the text as `instructions`: prompts are not stored",
        "modalities": "it is `output_modalities`",
        "voice": "it is `audio.output.voice`",
        "max_response_output_tokens": "it is `max_output_tokens`",
    }
    tunes: ClassVar = TUNES

    conversation: Literal["auto", "none"] = "auto"
    """`none`: what is said does not become part of the conversation."""
    input: Annotated[tuple[Item | ItemReference, ...], Meta(max_length=MOST_INPUT)] | None = None
    """What the model reads instead of the conversation: items of its own, and references to those
    of the conversation. They do not become part of it. Null: the conversation."""
    instructions: Instructions = ""
    """System prompt."""
    output_modalities: Modalities = ("audio",)
    """Either `audio`, with a transcript, or `text` alone."""
    audio: ResponseAudio = ResponseAudio()
    """Voice and format."""
    tools: Tools = ()
    """Functions that the model may call."""
    tool_choice: ToolChoice = "auto"
    """Whether it calls any, as for the session."""
    max_output_tokens: OutputTokens = "inf"
    """Longest response, in tokens."""
    metadata: (
        Annotated[Mapping[Name, Annotated[str, Meta(max_length=512)]], Meta(max_length=16)] | None
    ) = None
    """Texts of the client's own, told again with the response."""


class SessionSettings(Settings, frozen=True):
    """A session. `session.created` and `session.updated` tell all of it.

    Its fields are those of the API.
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
    """`realtime` is a conversation; in `transcription` the user's words are told, and nothing ever
    replies. It is chosen by the address, `/v1/realtime?intent=transcription`, or by the first
    update that names it before there is anything in the conversation; then it cannot change."""
    id: Annotated[str, TOLD] = ""
    """The session's id."""
    object: Annotated[Literal["realtime.session"], TOLD] = "realtime.session"
    """Always `realtime.session`."""
    model: Annotated[str, TOLD] = ""
    """The language model; the server's configuration chooses it, whatever is asked for."""
    output_modalities: Modalities = ("audio",)
    """Either `audio`, with a transcript, or `text` alone."""
    instructions: Instructions = ""
    """System prompt."""
    audio: Audio = Audio()
    """Audio in both directions."""
    tools: Tools = ()
    """Functions that the model may call."""
    tool_choice: ToolChoice = "auto"
    """`auto`: it calls what it finds fit; `none`: it is not told of them, and calls none;
    `required`, or a function: it says nothing, and calls one of them, or that one. Each response
    does, the one after the function's output too."""
    max_output_tokens: OutputTokens = "inf"
    """Longest response, in tokens; tokens of calls count too."""
    truncation: Annotated[Literal["auto"], TOLD] = "auto"
    """Always `auto`: the oldest turns leave the model's context when it is full."""
    include: Annotated[None, TOLD] = None
    """Always null: nothing more is included, whatever is asked for."""
    prompt: Annotated[None, instead("send the text as `instructions`: prompts are not stored")] = (
        None
    )
    """Always null: prompts are not stored."""
    tracing: Annotated[None, TOLD] = None
    """Always null: nothing is traced elsewhere. Whoever asks for it gets no traces."""
    voiceloop: Extensions = Extensions()
    """What voiceloop adds to the protocol."""

    def response(self, overrides: ResponseChanges | None = None) -> ResponseSettings:
        """What holds for a response, with the overrides of its `response.create` if it has any."""
        base = ResponseSettings(
            instructions=self.instructions,
            output_modalities=self.output_modalities,
            audio=ResponseAudio(ResponseOutput(self.audio.output.format, self.audio.output.voice)),
            tools=self.tools,
            tool_choice=self.tool_choice,
            max_output_tokens=self.max_output_tokens,
        )
        return base if overrides is None else base.updated(overrides)


class TranscriptionAudio(Object, frozen=True):
    """Audio in the one direction that there is."""

    input: InputAudio
    """What the user sends. Of its turn detection `create_response`, `interrupt_response` and
    `idle_timeout_ms` are off, whatever is asked for."""


class TranscriptionSession(Object, frozen=True):
    """What is told of a session of type `transcription`.

    It has these of the keys of a conversation; others of these, but for what only the server sets,
    are refused.
    """

    id: str
    """The session's id."""
    audio: TranscriptionAudio
    """What the user sends."""
    voiceloop: Extensions
    """What voiceloop adds to the protocol. What it adds to responses has no effect here."""
    type: Literal["transcription"] = "transcription"
    """The type again."""
    object: Literal["realtime.transcription_session"] = "realtime.transcription_session"
    """Always this."""
    include: None = None
    """Always null: nothing more is included, whatever is asked for."""


def as_told(settings: SessionSettings) -> SessionSettings | TranscriptionSession:
    """What a client is told of its session."""
    if settings.type == "realtime":
        return settings
    return TranscriptionSession(
        settings.id, TranscriptionAudio(settings.audio.input), settings.voiceloop
    )


def only_transcribing(settings: SessionSettings, recogniser: str) -> SessionSettings:
    """The settings of a session of type `transcription`: the words that the `recogniser` of that
    name hears are told, and nothing replies."""
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


if TYPE_CHECKING:  # what is UNSET there, only `updated` has to know
    SessionChanges = SessionSettings
    ResponseChanges = ResponseSettings
else:
    SessionChanges = changes(SessionSettings)
    ResponseChanges = changes(ResponseSettings)


def size(settings: SessionSettings | ResponseSettings) -> int:
    """How many bytes of UTF-8 the instructions and tools take."""
    tools = json.dumps(plain(settings.tools), ensure_ascii=False)
    return len(settings.instructions.encode()) + len(tools.encode())
