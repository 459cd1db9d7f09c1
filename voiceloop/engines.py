"""What voiceloop asks of its engines, and how it finds them.

An engine is synchronous and knows nothing of event loops. Work that takes long is a *step
generator*: it does one bounded piece of work (a draft-verify round, a prefill chunk, a piece of
synthesis) each time it is advanced, and yields either a result or None where a step gave none. A
`Runner` advances it, so back-pressure and cancellation act between steps and never within one.

An engine is loaded, warmed up and advanced on one thread, where the properties of a `Conversation`
are read too, between its steps. What else is asked of an engine is asked on the event loop: it
depends on nothing that a step changes, and needs no device.

Engines register by entry point, the built-in ones like anybody's: group `voiceloop.vad`,
`voiceloop.asr`, `voiceloop.turn`, `voiceloop.llm` or `voiceloop.tts`, an object called with the
matching section of the configuration and returning the engine. Where a recogniser, language model
or synthesizer has settings of its own, the object has a struct `Options`, a subclass of
`voiceloop.schema.Object`; what the user has set of it is the second argument. Its module may have a
function `footprint(config, device)`, which yields a `voiceloop.memoryplan.Part` for each thing that
takes memory of a device of that type, such as `cpu`. Engines are
imported only when they are chosen.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Generator,
    Iterator,
    Sequence,
)
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from threading import Lock
from types import ModuleType
from typing import Any, Literal, Protocol, TypeVar

from voiceloop.config import AsrConfig, Config
from voiceloop.errors import ConfigError
from voiceloop.schema import TOML, Mistake, Object, hints_of, read, suggestion
from voiceloop.types import (
    AudioFrame,
    Begun,
    Calibration,
    Clause,
    Past,
    Pcm,
    SpeechChunk,
    TokenBurst,
    Tool,
    ToolCall,
    Transcript,
    Word,
)

T = TypeVar("T")
Kind = Literal["vad", "asr", "turn", "llm", "tts"]
Steps = Generator[T | None, None, None]
"""A step generator: each advance is one bounded step; None is a step without a result."""


class Vad(Protocol):
    """Voice activity, frame by frame. One per stream of audio, since it carries state.

    Its windows are taken on the event loop, or on a thread for all streams where each takes long.
    """

    frame: int
    """Samples that `probability` takes, at 16 kHz."""

    def probability(self, pcm: Pcm) -> float:
        """Probability that `pcm`, exactly `frame` samples after the previous ones, is speech."""
        ...

    def reset(self) -> None:
        """Forget the stream so far."""
        ...


@dataclass(frozen=True, slots=True)
class AsrRequest:
    """Audio that a recogniser decodes at once, and what is wanted of its words."""

    pcm: Pcm
    """Samples at 16 kHz: no more than `Asr.max_window_s`."""
    final: bool = True
    """The best decode is wanted; otherwise a quick one will do."""
    timed: bool = False
    """The times of words have to be exact; otherwise they may be rough."""
    language: str | None = None
    """The language that is spoken, one of `Asr.languages`. None stands for the configured one, or
    for the one that is detected in `pcm` where that is configured."""
    settled: Sequence[str] = ()
    """Words that earlier decodes of the same beginning agree on. A final decode that lacks some of
    them is worth another look."""


@dataclass(frozen=True, slots=True)
class AsrTurn:
    """A turn of the user that has just begun, and what is wanted of its words."""

    number: int
    audio: AudioFrame
    """The audio of the turn so far, at 16 kHz. It begins a little before the speech."""
    speech_start: int
    """Index of the first voiced sample in the stream."""
    partials: bool = True
    """Words are wanted while the user speaks."""
    timed: bool = False
    """The final words need exact times."""


@dataclass(frozen=True, slots=True)
class AsrJob:
    """A piece of work of a session: `decode` runs on the model's thread, and the event loop then
    gives its words to `accept`."""

    pcm: Pcm
    """The audio that is decoded, at 16 kHz. The language is detected in it."""
    end: int
    """Index in the stream of the sample after the last that is decoded."""
    final: bool
    """The user is silent and may have finished: somebody waits for the words."""
    decode: Callable[[str | None], Sequence[Word]]
    """Decodes in a language (see `AsrRequest.language`)."""
    accept: Callable[[Sequence[Word]], Transcript]
    """Takes the words, and returns the transcript of the turn."""


class AsrSession(Protocol):
    """The recognition of one turn of the user.

    It is called on the event loop and never waits: whatever takes long is done in a job, of which
    there is never more than one at a time.
    """

    retracted: int
    """How many words that were settled the final transcript has not confirmed."""

    @property
    def start(self) -> int:
        """Index in the stream of the first sample of the turn."""
        ...

    @property
    def guess(self) -> Transcript | None:
        """The transcript if the silence since `pause` ends the turn, so that a reply can be
        prepared. None while the user speaks, and until it is known."""
        ...

    @property
    def hypothesis(self) -> str:
        """All words of the turn as they are understood by now."""
        ...

    def feed(self, frame: AudioFrame) -> None:
        """Take the stream's next frame. Samples that were lost before it count as silence."""
        ...

    def pause(self, sample: int, speech_end: int) -> None:
        """Note that the user fell silent at `speech_end`, which was decided at `sample`.

        The audio up to `sample` must have been fed, as for `end`.
        """
        ...

    def resume(self, speech_start: int, *, anew: bool = False, whole: bool = False) -> None:
        """Note that the user goes on from `speech_start`, which makes the guess void.

        With `anew`, what follows has nothing to do with what was said before the pause. With
        `whole`, all of the turn's audio is to be decoded together, to detect its language.
        """
        ...

    def end(self, sample: int, speech_end: int) -> Transcript | None:
        """Note that the turn is over. Returns its final transcript, or None where a job has yet to
        give it. Both are the same where a turn is cut off while the user speaks."""
        ...

    def next_job(self) -> AsrJob | None:
        """Return the job to do now, if there is one; its words must come back to `accept`."""
        ...


class Asr(Protocol):
    """A recogniser, which follows each turn of the user as it is spoken.

    There are two bases for an engine. `asr.streaming.StreamingAsr` is for one that has partial
    results of its own, and `asr.windowed.WindowedAsr` for one that decodes windows of audio.
    """

    name: str
    languages: tuple[str, ...] = ("en",)
    """Two-letter codes of the languages that it knows."""
    max_window_s: float
    """Longest audio that `transcribe` takes, in seconds."""

    @abstractmethod
    def session(self, turn: AsrTurn, config: AsrConfig) -> AsrSession:
        """Begin to recognise a turn. It is asked for on the event loop."""
        ...

    @abstractmethod
    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        """Decode some audio, and return its words, timed in seconds from its first sample.

        The work is bounded: it cannot be cancelled once it runs.
        """
        ...

    def detect_language(self, pcm: Pcm) -> tuple[str, float]:
        """Return which of `languages` is spoken in `pcm` (16 kHz), and how probable that is."""
        del pcm
        return self.languages[0], 1.0


class TurnModel(Protocol):
    """Tells by the sound of a voice whether its turn is over."""

    name: str
    silence_ms: int
    """Silence behind the voice that it wants to hear, in milliseconds."""
    window_s: float
    """It hears no more than so much, in seconds."""

    def end_of_turn_probability(self, pcm: Pcm) -> float:
        """How likely they have finished who fell silent at the end of `pcm` (16 kHz).

        One half tells nothing. Neither words nor what was said before count.
        """
        ...


class Conversation(Protocol):
    """One conversation's token ids and caches. Not thread-safe: its Runner serialises its steps.

    What steps change (`exchanges`, `tokens_read`, `limited`, the probability of an end) is read on
    the thread that runs them; `voiceloop.turn.observer` brings it to the event loop.

    A turn of the user goes by its number: `prefill`, `reply` and `revise` with the same one are
    about the same words, of which the newest text holds, and a new number closes the exchange
    before it. Where that was left without a reply, its text and the new one are one turn.
    """

    @property
    def exchanges(self) -> int:
        """Questions with their answers that stand before the user's current turn."""
        ...

    @property
    def tokens_read(self) -> int:
        """Tokens that the model has read so far, those it had to read again included."""
        ...

    @property
    def limited(self) -> bool:
        """The last reply did not end by itself: it had as many tokens as it may have."""
        ...

    @property
    def seed(self) -> int | None:
        """With which the same words in the same turns are answered in the same way again.

        None where replies depend on no seed, or on one that nobody knows.
        """
        ...

    def prefill(self, text: str, turn: int) -> Steps[None]:
        """Extend the caches to `text`, the stable beginning of what the user says in `turn`.

        Rolls back to the longest common token prefix first; costs nothing where nothing is new. A
        reply to the turn that was begun before is taken out.
        """
        ...

    def end_of_turn_probability(self) -> float | None:
        """How likely the user's turn ends after the text that `prefill` was last given.

        A reply tells it from its first step on, of its text without the punctuation at the end.
        None where the engine does not know.
        """
        ...

    def reply(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        """Answer the user's whole turn `text`; one item per verify step of the target model.

        Closing the generator early leaves the conversation usable; `heard` then says how much of
        the reply the user got to hear.
        """
        ...

    def revise(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        """Answer anew where a reply to the same turn was begun and the user's text has changed.

        Gives what `reply` would give, sooner: what the old reply shares with the new one costs a
        single pass.
        """
        ...

    def ahead(self, text: str, turn: int) -> Steps[int | Begun] | None:
        """Begin replies to what the user is likely to say in `turn`, which begins with `text`; it
        may be one that has not begun, after a reply that is heard to its end.

        Each step gives how many tokens there are so far; the last ones, what was begun, likeliest
        first. What is replied stays as it would be, and comes sooner where it was foreseen.
        Anything else that is asked for ends it. None where nothing is begun ahead. It is asked for
        on the event loop.
        """
        ...

    def recite(self, text: str, turn: int, reply: str) -> Steps[TokenBurst]:
        """Answer the user's whole turn `text` with `reply`, which others than the model have found.

        Nothing is computed: the model reads both when it reads on, and takes the reply for its own.
        Without a `text` the user has said nothing.
        """
        ...

    def tool_results(
        self, returned: Sequence[tuple[ToolCall, str]], turn: int
    ) -> Steps[TokenBurst | ToolCall]:
        """Continue the turn with what the tools returned that the reply called, in that order."""
        ...

    def heard(self, tokens: int) -> str:
        """Cut the last reply, on both caches, after its first `tokens` tokens; return their text.

        With 0 the whole exchange leaves no assistant turn in the history.
        """
        ...

    def rewrite(
        self,
        system: str,
        past: Sequence[Past],
        tools: Sequence[Tool] = (),
        required: Collection[str] = (),
    ) -> None:
        """Put another history in place: what the user said and what was replied, turn by turn.

        Of the `tools` the model is told in the way that it was trained to be, if it was. From then
        on each reply is a call of one of the `required` ones, if there are any; see `calls`.
        Costs nothing until something is read, and then as much as is not as it was. Of a history
        that takes more than half of the context the oldest turns are left out.
        """
        ...

    def calls(self, tools: Sequence[Tool]) -> bool:
        """Whether replies can be made to be calls of these. It is asked for on the event loop."""
        ...

    def opening(self, system: str, tools: Sequence[Tool]) -> tuple[int, int] | None:
        """How many tokens stand before the first turn with these, and how many may; None where
        nobody knows. It is asked for on the event loop."""
        ...

    def close(self) -> None:
        """Give the caches back."""
        ...


class Llm(Protocol):
    """A language model that holds many conversations."""

    name: str
    fingerprint: str
    """Tells it from other models, by what it computes and not by where it lies; its calibration is
    kept under this."""
    calibrations: dict[str, Calibration | None]
    """What its P(end of turn) means, by the language's code: None where the last word tells as
    much, and nothing where nobody has found out yet. Whoever finds out adds it."""
    borrowed: set[str]
    """Languages of which the calibration is that of another file of the model: good enough until
    this one's own is found."""
    system: str
    """The system prompt of conversations that are given no other; empty: none."""
    metered: bool
    """Somebody may have to pay for each token, so none are thought that may not be wanted."""

    def conversation(self, *, system: str | None = None, seed: int | None = None) -> Conversation:
        """Begin a conversation; `system` and `seed` stand in for the configured ones if given."""
        ...


class Tts(Protocol):
    """An incremental synthesizer."""

    name: str
    rate: int
    """Hertz of what it yields."""
    voice: str
    """The configured voice."""
    paces: bool
    """It can speak each clause faster or slower than the one before."""

    def voices(self) -> Sequence[str]:
        """Names of voices to choose from; a voice may go by other names too."""
        ...

    def check_voice(self, name: str) -> None:
        """ConfigError, which names the nearest, where there is no voice called `name`."""
        ...

    def language(self, voice: str | None = None) -> str:
        """Code of the language that a voice speaks, such as `en-us`: in it clauses are put into
        words. Empty where the engine does not know; None is the configured voice."""
        ...

    def synthesize(
        self, clause: Clause, voice: str | None = None, speed: float = 1.0
    ) -> Steps[SpeechChunk]:
        """Speak a clause, in chunks; the last has `last` set.

        `voice` is one that `check_voice` lets pass; None is the configured one. `speed` is against
        the configured pace: 1, unless it `paces`.
        """
        ...


@dataclass(slots=True, eq=False)
class Priority:
    """How urgent a step is. Its owner may change the level while the step waits.

    The level is changed on the event loop and read on any thread.
    """

    level: int = 0
    """Of waiting steps that with the smallest level goes first."""


FIRST, LATER, IDLE = 0, 10, 1000
"""Levels: committed work and final decodes; guesses and partial decodes; what nobody waits for.
Committed work that can wait for some seconds has a level between the first two for each second."""

URGENT, GUESS, IN_IDLE_TIME = Priority(FIRST), Priority(LATER), Priority(IDLE)
"""Priorities that nobody changes."""


class Runner(Protocol):
    """Executes the steps of one model's engines, one at a time."""

    def quiet_s(self) -> float:
        """Seconds for which nobody has wanted anything of it but in idle time."""
        ...

    async def call(self, job: Callable[[], T], *, priority: Priority = URGENT) -> T:
        """Run one bounded call; of those that wait, the most urgent goes first."""
        ...

    def stream(self, steps: Steps[T], *, priority: Priority = URGENT) -> AsyncGenerator[T, None]:
        """Advance a step generator as its consumer asks for results, dropping the Nones.

        Each step has the `priority` of a call. Closing the returned generator closes `steps`
        within one step.
        """
        ...


@dataclass(frozen=True, slots=True)
class Engines:
    """The loaded models, each with the runner that executes its steps."""

    vad: Vad
    asr: Asr
    asr_runner: Runner
    llm: Llm
    llm_runner: Runner
    tts: Tts
    tts_runner: Runner
    turn: TurnModel | None = None
    """Has a say in when a turn is over, beside the words."""
    turn_runner: Runner | None = None
    vad_runner: Runner | None = None
    """None where a window takes so little time that the event loop does it on the spot."""

    @property
    def runners(self) -> Sequence[Runner]:
        """All but that of voice activity detection, which has something to do for every frame."""
        every = self.asr_runner, self.turn_runner, self.llm_runner, self.tts_runner
        return [runner for runner in every if runner is not None]


def registered(kind: Kind) -> list[str]:
    """The engines that there are, by name."""
    return sorted(_entries(kind))


def _entries(kind: Kind) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=f"voiceloop.{kind}")}


def _entry(kind: Kind, name: str) -> EntryPoint:
    found = _entries(kind)
    if name not in found:
        raise ConfigError(f"there is no {kind} engine called '{name}'", suggestion(name, found))
    return found[name]


def configured(config: Config) -> Iterator[tuple[Kind, str, object]]:
    """The engines that are configured with their settings, in the order of a conversation."""
    yield "vad", config.vad.engine, config.vad
    yield "asr", config.asr.engine, config.asr
    yield "llm", config.llm.engine, config.llm
    yield "tts", config.tts.engine, config.tts
    if config.turns.sound != "none":
        yield "turn", config.turns.sound, config.turns


_importing = Lock()
"""Engines are loaded on a thread each. Where two threads import modules that need one another,
Python lets one of them see half of a module rather than wait for ever."""


def _imported(kind: Kind, name: str) -> Any:
    """What is called for the engine."""
    entry = _entry(kind, name)
    with _importing:
        return entry.load()


def module_of(kind: Kind, name: str) -> ModuleType:
    """The module that an engine is registered from."""
    _imported(kind, name)
    return sys.modules[_entry(kind, name).module]


def options_of(kind: Kind, name: str) -> type[Object] | None:
    """The settings of an engine's own; None where it has none, as those of voiceloop, which are not
    imported for that."""
    if _entry(kind, name).module.startswith("voiceloop."):
        return None
    return getattr(_imported(kind, name), "Options", None)


def check(kind: Kind, name: str, config: object) -> None:
    """Raise ConfigError for an engine that nobody registered, or wrong settings of its own."""
    _entry(kind, name)
    _read_options(kind, name, config)


def load(kind: Kind, name: str, config: object) -> object:
    """Build the engine registered as `name` in group `voiceloop.<kind>`.

    Raises ConfigError for a name nobody registered and for wrong settings of the engine's own, and
    whatever EngineError the engine raises.
    """
    build, options = _imported(kind, name), _read_options(kind, name, config)
    return build(config) if options is None else build(config, options)


def _read_options(kind: Kind, name: str, config: object) -> Object | None:
    """The settings of an engine's own, of its class `Options`; None where it has none."""
    given = dict(getattr(config, "options", {}))
    own = options_of(kind, name)
    if own is None:
        if given:
            raise ConfigError(
                f"{kind}.options is set, and the engine '{name}' has no settings of its own",
                f"leave out {kind}.options, or set {kind}.engine to the engine that they are for",
            )
        return None
    try:
        return read(own, given, TOML, text=True)
    except Mistake as mistake:
        where = ".".join((f"{kind}.options", *map(str, mistake.path)))
        hint = mistake.hint or f"'{name}' takes: {', '.join(hints_of(own))}"
        raise ConfigError(f"{where} {mistake}", hint) from None
