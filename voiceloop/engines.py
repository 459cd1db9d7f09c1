"""The interfaces of the engines, and the functions that find and load them.

An engine is synchronous and knows nothing of event loops. Long work is a *step generator*: each
time it is advanced, it does one bounded piece of work (a draft-verify round, a prefill chunk, a
piece of synthesis), and yields a result, or None if there is none yet. A `Runner` advances it, so
back-pressure and cancellation act between steps and never within one.

An engine is loaded, warmed up and advanced on one thread. Methods that do no work are used on the
event loop. So they may not depend on anything that a step changes, nor need a device.

Engines register by entry point, the built-in ones too. The group is `voiceloop.vad`,
`voiceloop.asr`, `voiceloop.turn`, `voiceloop.llm` or `voiceloop.tts`. The registered object is a
class or function. It is called with the matching section of the configuration, and returns the
engine. A recogniser, language model or synthesizer may have settings of its own. Then the
registered object has an attribute `Options`, a subclass of `voiceloop.settings.schema.Object`, and
it is called with an instance of `Options` as the second argument.

The module of an engine may have a function `footprint(config, device)`. It yields a
`voiceloop.placement.MemoryPart` for everything that takes memory on a device of that type, such as
`cpu`. Engines are imported only when they are chosen.
"""

from __future__ import annotations

import os
import sys
from abc import abstractmethod
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from threading import Lock
from types import ModuleType
from typing import Any, Literal, Protocol, TypeVar

from voiceloop.errors import ConfigError
from voiceloop.settings.config import AsrConfig, Config
from voiceloop.settings.schema import TOML, Mistake, Object, hints_of, read, suggestion
from voiceloop.types import (
    AudioFrame,
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
"""A step generator: each advance is one bounded step, and yields None if it has no result."""


class Vad(Protocol):
    """A detector of voice activity. It has state, so each stream of audio has its own.

    It runs on the event loop, or, if a window takes long, on one thread for all streams.
    """

    frame: int
    """Samples of one window, at 16 kHz."""

    def probability(self, pcm: Pcm) -> float:
        """Return the probability that `pcm`, the next `frame` samples of the stream, is speech."""
        ...

    def reset(self) -> None:
        """Forget the stream so far."""
        ...


@dataclass(frozen=True, slots=True)
class AsrRequest:
    """Audio that a recogniser decodes at once, and requirements for its words."""

    pcm: Pcm
    """At most `Asr.max_window_s` seconds of audio at 16 kHz."""
    final: bool = True
    """True for the best decode, False for a quick one."""
    timed: bool = False
    """True if the times of words have to be exact; otherwise they may be rough."""
    language: str | None = None
    """The language that is spoken, one of `Asr.languages`. None is the configured one; if that is
    `auto`, the language is detected in `pcm`."""
    settled: Sequence[str] = ()
    """Words on which earlier decodes of the same audio agreed. A final decode that lacks some of
    them is worth checking again."""
    wanted: Callable[[], bool] = lambda: True
    """Tells whether the words are still wanted. A recogniser that takes long may ask between two
    steps, and raise `Abandoned`."""


class Abandoned(Exception):
    """A recogniser gave up words that were no longer wanted."""


@dataclass(frozen=True, slots=True)
class AsrTurn:
    """A turn of the user that has just begun, and requirements for its words."""

    number: int
    audio: AudioFrame
    """The audio of the turn so far, at 16 kHz; it begins a little before the speech."""
    speech_start: int
    """Index in the stream of the first voiced sample."""
    partials: bool = True
    """True if words are wanted while the user speaks."""
    timed: bool = False
    """True if the final words need exact times."""


@dataclass(frozen=True, slots=True)
class AsrJob:
    """One decode of an `AsrSession`.

    `decode` runs on the model's thread. Then the event loop passes its words to `accept`.
    """

    pcm: Pcm
    """The audio to decode, at 16 kHz; the language is detected in it."""
    end: int
    """Index in the stream of the sample after the last of `pcm`."""
    final: bool
    """True if the user is silent and may have finished, so the words are urgent."""
    decode: Callable[[str | None], Sequence[Word] | None]
    """A function that decodes `pcm` in a language, one of `Asr.languages`. None is the configured
    language; if that is `auto`, the language is detected. The result is None if the words were no
    longer wanted."""
    accept: Callable[[Sequence[Word]], Transcript]
    """A function that takes the words, and returns the transcript of the turn."""
    abandon: Callable[[], None] = lambda: None
    """A function that is called instead of `accept` if the words were no longer wanted."""


class AsrSession(Protocol):
    """The recognition of one turn of the user.

    Its methods are called on the event loop and never wait. Long work is done in jobs, at most one
    at a time.
    """

    @property
    def retracted(self) -> int:
        """Return the number of committed words that the final transcript took back."""
        ...

    @property
    def start(self) -> int:
        """Return the index in the stream of the first sample of the turn."""
        ...

    @property
    def guess(self) -> Transcript | None:
        """Return the transcript that will be final if the current silence ends the turn.

        A reply is prepared from this transcript. None while the user speaks, and until a decode has
        given it.
        """
        ...

    @property
    def hypothesis(self) -> str:
        """Return the words of the whole turn, as the newest decode recognised them."""
        ...

    def feed(self, frame: AudioFrame) -> None:
        """Take the stream's next frame. Samples that were lost before it count as silence."""
        ...

    def pause(self, sample: int, speech_end: int) -> None:
        """Note that the user fell silent at `speech_end`, which was decided at `sample`.

        Both are indices in the stream. The audio up to `sample` must have been fed.
        """
        ...

    def resume(self, speech_start: int, *, anew: bool = False, whole: bool = False) -> None:
        """Note that the user goes on from `speech_start`. The guess is void then.

        With `anew`, the new speech is unrelated to that before the pause. With `whole`, all
        audio of the turn is decoded together, to detect its language.
        """
        ...

    def end(self, sample: int, speech_end: int) -> Transcript | None:
        """Note that the speech of the turn ended at `speech_end`, which was decided at `sample`.

        Returns the final transcript, or None if a job has yet to give it. The audio up to `sample`
        must have been fed. If a turn is cut off while the user speaks, both indices are equal.
        """
        ...

    def next_job(self) -> AsrJob | None:
        """Return the job to do now, or None. Pass the words of the job to the job's `accept`."""
        ...


class Asr(Protocol):
    """A recogniser, which follows each turn of the user as it is spoken.

    An engine inherits from one of two base classes: `asr.streaming.StreamingAsr` if it has partial
    results of its own, or `asr.windowed.WindowedAsr` if it decodes windows of audio.
    """

    name: str
    languages: tuple[str, ...] = ("en",)
    """Two-letter codes of the languages that it knows."""
    max_window_s: float
    """Longest audio that `transcribe` takes, in seconds."""

    @abstractmethod
    def session(self, turn: AsrTurn, config: AsrConfig) -> AsrSession:
        """Begin to recognise a turn. This is called on the event loop."""
        ...

    @abstractmethod
    def transcribe(self, request: AsrRequest) -> Sequence[Word]:
        """Decode some audio, and return its words, timed in seconds from its first sample.

        The call cannot be cancelled once it runs, so its work is bounded.
        """
        ...

    def detect_language(self, pcm: Pcm) -> tuple[str, float]:
        """Return which of `languages` is spoken in `pcm` (16 kHz), and how probable that is."""
        del pcm
        return self.languages[0], 1.0


class TurnModel(Protocol):
    """A model that judges from the sound of the voice whether a turn is over."""

    name: str
    silence_ms: int
    """Silence after the voice that the model needs to hear, in milliseconds."""
    window_s: float
    """Longest audio that the model hears, in seconds."""

    def end_of_turn_probability(self, pcm: Pcm) -> float:
        """Return the probability that the speaker in `pcm` (16 kHz) has finished.

        It depends on the sound alone, not on words or earlier turns. 0.5 means undecided.
        """
        ...


@dataclass(frozen=True, slots=True)
class ConversationStanding:
    """The state of a conversation after one of its steps."""

    exchanges: int = 0
    """Number of questions with answers before the user's current turn."""
    tokens_read: int = 0
    """Number of tokens that the model has read so far. A token counts each time it is read."""
    limited: bool = False
    """Whether the last reply was cut off because it had reached the maximum length."""
    end_probability: float | None = None
    """Probability that the user's turn ends after the words that the model has read of it; None if
    the engine does not know. These words are the argument `text` of the last `prefill` or, after
    the first step of a `reply`, the argument `text` of `reply` without the final punctuation."""


class Conversation(Protocol):
    """The token ids and the caches of one conversation.

    It is not thread-safe. What the event loop needs to know of it is the value `standing`.

    A turn of the user has a number. Calls of `prefill`, `reply` and `revise` with the same number
    are about the same turn: the newest text replaces the earlier ones. A new number closes the
    exchange before it. If the reply of that exchange was begun and then cut to nothing, the
    user's words in it and the new words become one turn. If no reply was begun, the user's words in
    it are forgotten.
    """

    effort: str | None
    """How much the model reasons before each reply, such as `low`; None for the configured amount.
    Like `parallel_calls` it is set together with `rewrite`, and an engine may ignore it."""
    parallel_calls: bool
    """Whether one reply may call several tools at once."""

    @property
    def standing(self) -> ConversationStanding:
        """Return the state after the last step. A step replaces the value before it gives its
        result, so any thread may read it."""
        ...

    @property
    def seed(self) -> int | None:
        """Return the seed that gives the same replies to the same turns again.

        None if replies depend on no seed, or on an unknown one.
        """
        ...

    def prefill(self, text: str, turn: int) -> Steps[None]:
        """Extend the caches to `text`, the stable beginning of the user's words in `turn`.

        First the caches are cut back to the beginning that they share with the new tokens. If no
        token is new, this costs nothing. A reply that was begun to the same turn is removed.
        """
        ...

    def reply(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        """Answer `text`, the user's whole turn, with one item per verify step of the target model.

        The generator may be closed early. Then a call of `heard` says how much of the reply the
        user heard.
        """
        ...

    def revise(self, text: str, turn: int) -> Steps[TokenBurst | ToolCall]:
        """Answer anew after a reply to the same turn was begun and the user's text has changed.

        This gives the same items as `reply`, but sooner: the beginning that the old reply shares
        with the new one costs a single pass.
        """
        ...

    def ahead(self, text: str, turn: int) -> Steps[int] | None:
        """Begin replies to what the user may say in `turn`, if it begins with `text`.

        Once a reply was heard to its end, `turn` may be the next one, which has not begun yet. A
        step gives the number of tokens that were computed so far. The real reply has the same
        tokens as without this call, but comes sooner if it begins like a begun reply. Any other
        call ends this work. Returns None if the engine begins nothing ahead. This is called on the
        event loop.
        """
        ...

    def recite(
        self, text: str, turn: int, reply: str, effect: ToolCall | None = None
    ) -> Steps[TokenBurst]:
        """Answer `text`, the user's whole turn, with `reply`, which does not come from the model.

        Nothing is computed now. At its next step the model reads `text` and `reply`, as if it had
        written the reply. An empty `text` means that the user has said nothing. If `effect` is
        given, it is what was done: the model reads that call with its result instead of `reply`,
        however much of `reply` is heard.
        """
        ...

    def catch_up(self) -> Steps[None]:
        """Extend the caches to the end of a recited reply, while it sounds.

        This changes nothing but the caches, and any other call ends it. The model also reads a
        history that `rewrite` has put before the reply. So the next turn need not wait for that.
        """
        ...

    def tool_results(
        self, returned: Sequence[tuple[ToolCall, str]], turn: int, say: str = ""
    ) -> Steps[TokenBurst | ToolCall]:
        """Continue the reply with the results of the tools that it called, in the order of the
        calls. If there is a text `say`, the reply ends with it, and the model adds nothing."""
        ...

    def heard(self, tokens: int) -> str:
        """Cut the last reply after its first `tokens` tokens, and return the text that is kept.

        With 0 nothing is kept. This is called on the event loop while no step runs.
        """
        ...

    def rewrite(
        self,
        system: str,
        past: Sequence[Past],
        tools: Sequence[Tool] = (),
        required: Collection[str] = (),
    ) -> None:
        """Replace the system prompt, the history `past` and the tools.

        The model gets the `tools` in the format of its training, if it has one. If `required` names
        some of the tools, every reply from now on is a call of one of these; `calls` tells if that
        is possible. The next step that reads does the work, and only for the tokens that have
        changed. If the history takes more than half of the context, its oldest turns are left out.
        """
        ...

    def calls(self, tools: Sequence[Tool]) -> bool:
        """Return whether replies can be forced to be calls of `tools`.

        This is called on the event loop.
        """
        ...

    def opening(self, system: str, tools: Sequence[Tool]) -> tuple[int, int] | None:
        """Return how many tokens `system` and `tools` take, and how many they may take.

        None if the engine does not know. This is called on the event loop.
        """
        ...

    def close(self) -> None:
        """Free the caches."""
        ...


class Llm(Protocol):
    """A language model that holds many conversations."""

    name: str
    fingerprint: str
    """A key that depends on the weights of the model and not on their path. The calibration of the
    model is stored under this key."""
    calibrations: dict[str, Calibration | None]
    """The calibration of the end probabilities, by language code. It is None for a language in
    which rules on the last word find the ends of turns as well as the probabilities do. A language
    without an entry is not calibrated yet."""
    borrowed: set[str]
    """Codes of languages without a calibration for this model file. They use the calibration of
    another file of the same model, e.g. of another quantisation."""
    system: str
    """The default system prompt of conversations; empty: none."""
    metered: bool
    """True if the user may have to pay for tokens. Then no reply that may be dropped is begun,
    unless `turns.max_guesses` has a number."""
    acts: bool
    """True if replies may do what the user wishes, as those of a program may. Then no rule refuses
    a wish that voiceloop cannot fulfil, and a reply may claim a deed."""

    def conversation(self, *, system: str | None = None, seed: int | None = None) -> Conversation:
        """Begin a conversation. `system` and `seed` replace the configured ones if given."""
        ...


class Tts(Protocol):
    """An incremental synthesizer."""

    name: str
    rate: int
    """Sample rate of its audio, in hertz."""
    voice: str
    """The configured voice."""
    paces: bool
    """True if the pace can change from clause to clause."""

    def voices(self) -> Sequence[str]:
        """Return the names of the voices. A voice may have other names too."""
        ...

    def check_voice(self, name: str) -> None:
        """Raise ConfigError, with the nearest name, if there is no voice called `name`."""
        ...

    def language(self, voice: str | None = None) -> str:
        """Return the code of the language that `voice` speaks, such as `en-us`.

        None is the configured voice. Numbers and symbols of a clause are written out in this
        language. Returns an empty text if the engine does not know it.
        """
        ...

    def synthesize(
        self, clause: Clause, voice: str | None = None, speed: float = 1.0
    ) -> Steps[SpeechChunk]:
        """Speak a clause, in chunks; the last has `last` set.

        `voice` is a name that `check_voice` accepts; None is the configured voice. `speed`
        multiplies the configured pace. It is always 1 if `paces` is False.
        """
        ...


@dataclass(slots=True, eq=False)
class Priority:
    """The urgency of a step. Its owner may change the level while the step waits.

    The level is changed on the event loop and read on any thread.
    """

    level: int = 0
    """The waiting step with the smallest level is next."""


FIRST, LATER, IDLE = 0, 10, 1000
"""Levels. `FIRST`: committed work and final decodes. `LATER`: guesses and partial decodes.
`IDLE`: work in idle time.

The level of a committed reply rises from `FIRST` towards `LATER`: by one for each second of its
audio that is ready to be played.
"""

URGENT, GUESS, IN_IDLE_TIME = Priority(FIRST), Priority(LATER), Priority(IDLE)
"""Priorities with a level that never changes."""


class Runner(Protocol):
    """An executor that runs the steps of one model, one at a time."""

    def quiet_s(self) -> float:
        """Return the seconds since the end of the last work with a level below `IDLE`; 0 during
        such work."""
        ...

    async def call(self, job: Callable[[], T], *, priority: Priority = URGENT) -> T:
        """Run `job`, one bounded step. The most urgent of the waiting jobs is next."""
        ...

    def stream(self, steps: Steps[T], *, priority: Priority = URGENT) -> AsyncGenerator[T, None]:
        """Advance a step generator when the consumer requests a result, and skip each None.

        Each step is scheduled like a `call` with this `priority`. If the returned generator is
        closed, `steps` is closed after at most one more step.
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
    """The model that judges the end of turns from the sound; None if none is configured."""
    turn_runner: Runner | None = None
    vad_runner: Runner | None = None
    """The runner of the VAD; None if the VAD is so quick that it runs on the event loop."""
    new_vad: Callable[[], Vad] | None = None
    """Function that makes a VAD for one conversation. None means the configured VAD."""

    @property
    def runners(self) -> Sequence[Runner]:
        """Return all runners except that of the VAD, which is busy at every frame."""
        every = self.asr_runner, self.turn_runner, self.llm_runner, self.tts_runner
        return [runner for runner in every if runner is not None]


def registered(kind: str) -> dict[str, EntryPoint]:
    """Return the entry points of a kind of engines or rules, by name."""
    return {entry.name: entry for entry in entry_points(group=f"voiceloop.{kind}")}


def _entry(kind: Kind, name: str) -> EntryPoint:
    found = registered(kind)
    if name not in found:
        raise ConfigError(f"there is no {kind} engine called '{name}'", suggestion(name, found))
    return found[name]


Own = Mapping[Kind, Callable[..., object]]
"""Engines that a program brings, by kind. Each is a function or class that makes the engine from
its section of the settings, and from its `Options` if it has some. They replace the configured
engines."""


def configured(config: Config) -> Iterator[tuple[Kind, str, object]]:
    """Yield the kind, the name and the settings of each configured engine."""
    yield "vad", config.vad.engine, config.vad
    yield "asr", config.asr.engine, config.asr
    yield "llm", config.llm.engine, config.llm
    yield "tts", config.tts.engine, config.tts
    if config.turns.sound != "none":
        yield "turn", config.turns.sound, config.turns


NO_REPORTS = "ORT_DISABLE_TELEMETRY"
"""The environment variable that stops ONNX Runtime from reporting its use to its makers.

Versions from 1.29 on report it by default.
"""
_importing = Lock()
"""Serialises imports, since engines are loaded on a thread each. If two threads import modules that
import each other, Python avoids a deadlock by giving one of them a half-imported module."""


def _imported(kind: Kind, name: str) -> Any:
    """Import the registered object, which builds the engine when it is called."""
    entry = _entry(kind, name)
    with _importing, _unreported():
        return entry.load()


@contextmanager
def _unreported() -> Generator[None]:
    """Keep ONNX Runtime from reporting its use to its makers if it is imported within the context.

    ONNX Runtime reads an environment variable when it is imported. The variable is removed after
    that, since the process may belong to another program. A value that the user has set stays.
    """
    if NO_REPORTS in os.environ:
        yield
        return
    os.environ[NO_REPORTS] = "1"
    try:
        yield
    finally:
        del os.environ[NO_REPORTS]


def module_of(kind: Kind, name: str) -> ModuleType:
    """Return the module that registers the engine."""
    _imported(kind, name)
    return sys.modules[_entry(kind, name).module]


def options_of(kind: Kind, name: str) -> type[Object] | None:
    """Return the class of an engine's own settings, or None if it has none.

    The engines that come with voiceloop have none, and are not imported here.
    """
    if _entry(kind, name).module.startswith("voiceloop."):
        return None
    return getattr(_imported(kind, name), "Options", None)


def check(kind: Kind, name: str, config: object) -> None:
    """Raise ConfigError if no engine is called `name`, or if its own settings are wrong."""
    _read_options(kind, name, config, options_of(kind, name))


def load(kind: Kind, name: str, config: object) -> object:
    """Build the engine registered as `name` in group `voiceloop.<kind>`.

    Raises ConfigError if no such engine is registered, or if its `Options` refuse the settings.
    Raises EngineError if the engine cannot be loaded.
    """
    options = _read_options(kind, name, config, options_of(kind, name))
    return _built(_imported(kind, name), config, options)


def load_rule(kind: Literal["endpoint", "interruption"], name: str, known: Collection[str]) -> Any:
    """Build the rule of turn-taking that a package registers as `name` in group `voiceloop.<kind>`.
    Raises ConfigError if there is none; `known` are the names of rules that need no package."""
    found = registered(kind)
    if name not in found:
        raise ConfigError(
            f"turns.{kind}: there is no rule '{name}'", suggestion(name, [*known, *found])
        )
    with _importing:
        return found[name].load()()


def name_of(make: Callable[..., object]) -> str:
    """Return the name of an engine that a program brings."""
    return getattr(make, "__name__", type(make).__name__)


def build(kind: Kind, make: Callable[..., object], config: object) -> object:
    """Build an engine that a program brings. `make` is its class or function.

    Raises ConfigError if its `Options` refuse the settings, and EngineError if it cannot be loaded.
    """
    options = _read_options(kind, name_of(make), config, getattr(make, "Options", None))
    return _built(make, config, options)


def _built(make: Callable[..., object], config: object, options: Object | None) -> object:
    return make(config) if options is None else make(config, options)


def _read_options(kind: Kind, name: str, config: object, own: type[Object] | None) -> Object | None:
    """Read the engine's own settings into its class `own`; None if it has no such class."""
    given = dict(getattr(config, "options", {}))
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
