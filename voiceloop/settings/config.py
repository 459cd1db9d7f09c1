"""Settings: nested structs with a default for everything, and what changes them.

Each of these wins over those before it: defaults, preset, user file, ./voiceloop.toml, --config
FILE, flags. A wrong key or value raises a ConfigError with the key, its origin and what was
expected. This module does not know what a setting does, nor how a command line is parsed.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Container, Iterable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta, field

from voiceloop.errors import ConfigError
from voiceloop.settings.presets import PRESETS
from voiceloop.settings.schema import (
    TOML,
    Count,
    Fraction,
    Mistake,
    Object,
    Positive,
    Texts,
    hints_of,
    is_struct,
    meanings,
    members,
    mismatch,
    nearest,
    one_line,
    read,
)

Penalty = Annotated[float, Meta(ge=-2, le=2)]


Options = Mapping[str, object]
"""Settings that only one engine knows, by name; `voiceloop.engines.load` checks them."""


class VadConfig(Object, frozen=True):
    """Voice activity detection."""

    engine: str = "silero"
    """`silero`, or an engine of your own by its name (docs/engines.md)."""


class AsrConfig(Object, frozen=True):
    """Speech recognition."""

    engine: str = "whisper"
    """`whisper`, or an engine of your own by its name (docs/engines.md)."""
    model: str = "starter"
    """The recogniser's model. `starter`, one that has been pulled (`tiny.en`; `voiceloop models
    list`), a folder with a CTranslate2 Whisper model, or a repository of the Hugging Face hub."""
    language: str = "en"
    """What is spoken: a two-letter code, or `auto`. With `auto` a model of several languages
    detects it in each turn, until it is certain. In English, and in languages whose pack is
    installed (German, Spanish), the last words can show that a turn goes on; in other languages
    silence alone ends it."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the model runs; `auto` takes the GPU if there is one that works."""
    compute_type: Literal["auto", "int8", "float16", "float32"] = "auto"
    """How CTranslate2 stores and multiplies weights. On a CPU voiceloop runs its own encoder for
    Whisper, always in 32 bits."""
    beam_size: Annotated[int, Meta(ge=1, le=64)] = 1
    """Beams of the final decode; partial decodes are always greedy."""
    pad_s: Annotated[float, Meta(ge=0, le=30)] | None = 0.5
    """Silence after the speech that Whisper's encoder computes in full on a CPU, in seconds. The
    rest of the window of 30 seconds is approximated. `none` computes the whole window, which takes
    several times as long. The starter model was trained on windows of any length and needs no such
    silence."""
    partial_every_ms: Annotated[int, Meta(ge=20)] = 240
    """Shortest new audio from one partial decode to the next, in milliseconds. If decodes are slow,
    there is more audio between them."""
    options: Options = field(default_factory=dict[str, object])
    """Settings of an engine's own, by name: the table `[asr.options]`, or `--asr.options.NAME`. The
    engines that come with voiceloop have none."""

    @property
    def hears_no_people(self) -> bool:
        """Return whether this is the starter's recogniser, which knows synthetic voices alone."""
        return self.engine == "whisper" and self.model == "starter"


class LlmConfig(Object, frozen=True):
    """The language model that replies.

    Its fields are settings.
    """

    engine: str = "speculative"
    """`speculative`, in this process, or `openai`, any server that speaks OpenAI's protocol; or an
    engine of your own by its name (docs/engines.md)."""
    base_url: str = ""
    """For `openai`: where the server is, such as `http://localhost:11434/v1`."""
    timeout_s: Annotated[float, Meta(ge=0.1)] = 20.0
    """For `openai`: seconds without any answer from the server after which a request fails. A
    server that has not begun to answer has twice as long, since it may be loading its model."""
    target: str = "starter"
    """The model that replies. `starter`, one that has been pulled (`smollm2-135m-instruct`;
    `voiceloop models list`), a folder, a GGUF file, or a repository of the Hugging Face hub. For
    `openai`: the model's name on the server."""
    draft: str = "auto"
    """What drafts tokens: a smaller model, given as for `llm.target`; the folder of a draft that
    was trained for the target (`python -m models.train.draft`, in a checkout); `ngram`, which
    repeats earlier text and needs no second model; or `none`. `auto` takes the draft that ships for
    the target, else `ngram`. Drafts ship for the starter and, in the packages, for
    SmolLM2-135M-Instruct."""
    draft_tokenizer: str = ""
    """Where the draft's tokenizer is, if not in the draft's folder: another folder, or the name of
    a model."""
    num_speculative_tokens: Count | Literal["auto"] = "auto"
    """Draft tokens in a round. `auto` chooses the number from the measured cost of steps and the
    share of draft tokens that are accepted."""
    draft_tree: Literal["auto", "on", "off"] = "auto"
    """Whether a draft may propose several tokens for one position, if measurements show that this
    is faster. This needs `llm.num_speculative_tokens` at `auto`. `auto` allows it only to drafts
    that were trained for the target. The second choices of other drafts are seldom right."""
    branches: Annotated[int, Meta(ge=0, le=16)] = 0
    """Largest number of replies that are begun ahead at once, in idle time, to what the user is
    likely to say next. If one of them begins like the real reply, the real reply comes sooner. 0
    begins none. This needs the package voiceloop-parallel (docs/engines.md)."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where target and draft run; `auto` takes a CUDA GPU, else Apple's GPU, else the CPU."""
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    """Type of the weights; `auto` is float32 on the CPU and the checkpoint's own elsewhere."""
    temperature: Annotated[float, Meta(ge=0)] = 0.0
    """Divides the logits before sampling; 0 is greedy."""
    top_k: Count = 0
    """Sample among the k likeliest tokens; 0 keeps all."""
    top_p: Fraction = 1.0
    """Sample among the likeliest tokens that together have this probability; 1 keeps all."""
    min_p: Fraction = 0.0
    """Sample among the tokens with at least this share of the likeliest one's probability; 0 keeps
    all."""
    repetition_penalty: Annotated[float, Meta(ge=0.01)] = 1.0
    """A value above 1 makes tokens less likely if they are in the conversation's replies or in the
    user's last words."""
    presence_penalty: Penalty = 0.0
    """Subtracted from the logit of each token that the reply has used."""
    frequency_penalty: Penalty = 0.0
    """Subtracted from a token's logit for each time that the reply has used it."""
    stop: Texts = ()
    """Texts before which a reply ends."""
    seed: Count | Literal["auto"] = "auto"
    """Seed of the sampling noise; `auto` draws one for each conversation, and traces show it."""
    best_of: Annotated[int, Meta(ge=1, le=16)] = 1
    """Candidate replies for each turn, of which the best is spoken. They have seeds of their own
    and are computed together. More than one needs a temperature above 0 and the package
    voiceloop-parallel (docs/engines.md)."""
    best_of_for: Literal["clause", "reply"] = "clause"
    """What candidates are judged by. `clause`: their first clauses; then only the best one is
    continued. `reply`: whole replies; then the first word is spoken later."""
    scorer: str = "likelihood"
    """How candidates are scored: `likelihood`, the target's mean log-likelihood of a token;
    `concise`, little repetition and not too many words; or a function of your own by its name
    (docs/engines.md)."""
    max_new_tokens: Positive = 100
    """Longest reply, in tokens. After three fifths of them a reply ends with its current sentence.
    The user can ask for more with "go on"."""
    thinking: Literal["off", "on"] = "off"
    """For `openai`: `off` asks the model not to think before it replies, if the server supports
    that; `on` leaves it to the model. Models in this process never think."""
    max_thought_tokens: Positive = 1024
    """For `openai`: longest thought before a reply, in tokens; a longer one is cut off. Tokens of
    the thought do not count towards `llm.max_new_tokens`."""
    context: Positive = 2048
    """Tokens that the cache of each conversation holds."""
    cache_mb: Count = 2048
    """Memory for the caches of all conversations, in MiB. When it is full, idle conversations lose
    theirs, the longest unused first, and read their history again when they go on."""
    system: str = "auto"
    """System prompt; empty: none. `auto` asks for short replies that suit speech. With `auto`, the
    starter and models that take no system prompt get none."""

    skills: Literal["rules", "tools", "none"] = "rules"
    """What is answered without the language model. `rules`: the time, timers, sums, units and
    commands such as "stop", in English, German and Spanish, if a rule understands them for sure.
    `tools`: in addition, models whose chat template supports tools may call these. `none`: the
    model answers everything. Server conversations with instructions or tools of the client's own
    have no skills."""
    options: Options = field(default_factory=dict[str, object])
    """Settings of an engine's own, by name: the table `[llm.options]`, or `--llm.options.NAME`. The
    engines that come with voiceloop have none."""

    @property
    def answers_little(self) -> bool:
        """Return whether this is the starter's model, which knows only a few kinds of questions."""
        return self.engine == "speculative" and self.target == "starter"

    @property
    def often_wrong(self) -> bool:
        """Return whether this is the small language model of preset mini."""
        return self.engine == "speculative" and self.target == PRESETS["mini"]["llm.target"]


class TtsConfig(Object, frozen=True):
    """Speech synthesis."""

    engine: str = "espeak"
    """`espeak`, `piper`, `kokoro` or `coqui`; or an engine of your own by its name
    (docs/engines.md)."""
    model: str = ""
    """For `piper` a voice that has been pulled (`en_US-joe-medium`), a folder or an .onnx file; for
    `kokoro` a model that has been pulled (`kokoro-82m`) or a folder; for `coqui` a folder or one of
    its model names. Empty: the engine's default."""
    voice: str = ""
    """Name of a voice; `voiceloop voices` lists them. For `espeak` it is a language such as
    `en-gb`, for `piper` a model or a speaker in it, for `kokoro` a voice such as `af_heart`, for
    `coqui` a speaker. Empty: the engine's first voice. For XTTS, a model of `coqui`, a language may
    follow (`Claribel Dervla@de`); without it the voice speaks English. XTTS also imitates the
    speaker in a recording (`me.wav@de`), who must have agreed to it."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where a voice of Coqui TTS or Piper runs; `auto` takes a CUDA GPU if there is one, and for
    Piper only with onnxruntime-gpu. The other engines run on the CPU."""
    speed: Annotated[float, Meta(ge=0.5, le=2.5)] = 1.0
    """Pace of the voice: 1 is its normal pace, 2 is twice as fast."""
    options: Options = field(default_factory=dict[str, object])
    """Settings of an engine's own, by name: the table `[tts.options]`, or `--tts.options.NAME`. The
    engines that come with voiceloop have none."""


class TurnConfig(Object, frozen=True):
    """The rules by which a turn of the user begins and ends.

    Its fields are settings.
    """

    threshold: Fraction = 0.5
    """Speech probability at which a frame counts as voiced."""
    release: Fraction = 0.35
    """Speech probability below which speech, once begun, counts as silence."""
    min_speech_ms: Count = 64
    """Shortest voiced audio that begins a turn, in milliseconds."""
    pause_ms: Count = 32
    """Silence after which the end of the turn is guessed and the final decode begins, in
    milliseconds."""
    pause_below: Fraction = 0.95
    """Speech probability below which a frame begins a pause if it is no louder than the background.
    The VAD notices the end of speech late, and a guess costs little. With 0 only `turns.release`
    decides where a pause begins."""
    endpoint: str = "auto"
    """How the end of a turn is judged: `p-eot`, the language model's end probability;
    `trailing-words`, the last word; `fixed`, silence alone. `auto` is `p-eot` once the model is
    calibrated and judges better than the last word; until then `trailing-words`. A package may
    bring another rule."""
    interruption: str = "words"
    """How it is judged whether a sound of the user interrupts the reply: `words`, by what was said
    and for how long. A package may bring another rule."""
    sound: str = "none"
    """A model that judges by the sound of the voice whether a turn is over, or `none`. Its
    judgement counts wherever that of the language model does. `smart-turn-v3.2` has to be pulled.
    It was made for real voices and judges synthetic ones poorly."""
    hangover_ms: Count = 500
    """Silence that ends a turn whose words leave open whether it is complete, in milliseconds. If
    the user goes on just after the end of a turn, the next turn waits at least as long. With a
    model that judges by the sound, the silence is shorter the likelier the end is."""
    complete_ms: Count = 88
    """Shortest silence that ends a turn that is evidently complete, in milliseconds; the
    calibration of a less certain language model asks for more."""
    incomplete_ms: Annotated[int, Meta(ge=0, le=1200)] = 1100
    """Silence that ends a turn that is evidently incomplete, or whose words are not known yet, in
    milliseconds."""
    pre_roll_ms: Count = 300
    """Audio before the beginning of a turn that is recognised too, in milliseconds."""
    max_turn_s: Annotated[float, Meta(ge=1)] = 60.0
    """Longest turn, in seconds; a longer one is ended."""
    max_guesses: Count | Literal["auto"] = "auto"
    """Largest number of replies that are begun before the end of a turn, when its words or a
    silence suggest the end; 0 begins none. `auto` is 6, or 0 for a language model that may be paid
    for by the token."""


class WakeConfig(Object, frozen=True):
    """What must be said before `voiceloop talk` hears anything; empty: nothing."""

    phrase: str = ""
    """A phrase of your own, such as `okay computer`, that the recogniser finds after a silence. It
    should be two words or more that the recogniser knows well. Empty: none."""
    model: str = ""
    """A wake word that a small network finds, with the extra `wake`: `okay_nabu`, `hey_jarvis`,
    `hey_mycroft`, `alexa`, or a file of microWakeWord (NAME.tflite beside NAME.json). It takes much
    less computing than a phrase. Empty: none."""
    open_s: Annotated[float, Meta(ge=1)] = 8.0
    """Seconds after the last turn for which you are heard without the wake word or phrase."""


class ServerConfig(Object, frozen=True):
    """The limits that `voiceloop serve` sets for its clients.

    Its fields are settings.
    """

    max_sessions: Positive = 4
    """Clients at once. The same number of sessions may wait for their clients to come back."""
    max_sessions_per_key: Positive = 4
    """Clients of one API key at once; without keys all clients share this number."""
    max_parked_per_key: Positive = 2
    """Sessions of one key that wait for their clients to come back; beyond that the oldest ends."""
    resume_s: Annotated[float, Meta(ge=0)] = 60.0
    """How long a session waits for a client whose connection broke, in seconds; 0: not at all."""
    store: str = ""
    """Where sessions wait for their clients: empty for the memory of this server, or
    `redis://HOST:PORT` for several servers."""
    session_s: Annotated[float, Meta(ge=1)] = 3600.0
    """Longest session, in seconds; clients of OpenAI's protocol expect such a limit."""
    idle_s: Annotated[float, Meta(ge=1)] = 600.0
    """Seconds without a message after which a client counts as gone."""
    ping_s: Annotated[float, Meta(ge=0.1)] = 20.0
    """Seconds between two pings to a client. It has the same time to answer a ping."""
    drain_s: Annotated[float, Meta(ge=0)] = 10.0
    """Seconds that each conversation has to end its turn after the server was told to end."""
    audio_ahead_s: Annotated[float, Meta(ge=1)] = 60.0
    """Audio that a client may send ahead of real time, in seconds."""
    audio_backlog_s: Annotated[float, Meta(ge=1)] = 60.0
    """Audio that may wait for recognition, in seconds."""
    messages_per_s: Positive = 200
    """Messages a second that a client may send on average; audio in frames of 20 ms makes 50."""
    messages_burst: Positive = 1000
    """Messages that a client may send at once."""
    prefill_tokens_per_min: Positive = 120_000
    """Most tokens a minute that the language model reads for a session."""
    generated_tokens_per_min: Positive = 12_000
    """Most tokens a minute that the language model writes for a session, heard or not."""
    conversation_bytes: Positive = 1_048_576
    """Text, instructions and tools that a session may hold, in bytes of UTF-8."""


class McpServer(Object, frozen=True, omit_defaults=True):
    """How to reach one MCP server: either `command`, or `url`."""

    command: str = ""
    """Program to run, which speaks the protocol on its standard input and output."""
    args: tuple[str, ...] = ()
    """Arguments of the program."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Environment variables of the program, besides PATH, HOME and similar ones. The value
    `${NAME}` stands for the variable NAME of voiceloop's own environment."""
    url: str = ""
    """Address of a server that speaks streamable HTTP."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """HTTP headers of each request. The value `${NAME}` stands for the variable NAME of voiceloop's
    own environment."""
    confirm: Texts = ()
    """Tools that run only after the user has said yes, by their names on the server; `*` means
    all."""
    timeout_s: Annotated[float, Meta(ge=0.1, le=600)] = 10.0
    """Seconds after which a call is given up."""


class McpConfig(Object, frozen=True):
    """Tools of MCP servers, which the language model may call."""

    servers: Mapping[str, McpServer] = field(default_factory=dict[str, McpServer])
    """The servers, each a table `[mcp.servers.NAME]` (docs/tools.md)."""
    file: str = ""
    """A JSON file with more servers under `mcpServers`, as other programs have it."""
    serve: Texts = ()
    """Names of the servers whose tools `voiceloop serve` offers to every client. It does not start
    the other servers."""


class Config(Object, frozen=True):
    """All settings."""

    preset: Literal["starter", "mini", "cpu", "laptop", "desktop", "small", "best"] = "starter"
    """A set of models; `voiceloop models list` says what each preset is good for and needs.
    `starter` ships with voiceloop, the others are pulled (`voiceloop models pull laptop`). If none
    is named, `talk` and `serve` take the best preset that has been pulled."""
    threads: Annotated[int, Meta(ge=0, le=256)] = 0
    """Threads of torch, ctranslate2 and onnxruntime each; 0 takes half of the cores that the
    process may use, and all of them for large work: Whisper's encoder, and long passes of most
    language models."""
    place: str = ""
    """Where the user is, such as `Lisbon, Portugal`, for the language model's prompt."""
    timezone: str = ""
    """Time zone of the clock, such as `Europe/Lisbon`; empty: this machine's."""
    vad: VadConfig = VadConfig()
    asr: AsrConfig = AsrConfig()
    llm: LlmConfig = LlmConfig()
    tts: TtsConfig = TtsConfig()
    turns: TurnConfig = TurnConfig()
    wake: WakeConfig = WakeConfig()
    server: ServerConfig = ServerConfig()
    mcp: McpConfig = McpConfig()


def _hints(kind: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, hint in hints_of(kind).items():
        if is_struct(hint):
            yield from _hints(hint, f"{prefix}{name}.")
        elif hint != Options:
            yield f"{prefix}{name}", hint


KEYS: Mapping[str, Any] = dict(_hints(Config))
"""The type of every setting, by dotted key (`asr.model`)."""
SECTIONS = tuple(dict.fromkeys(key.partition(".")[0] for key in KEYS if "." in key))
"""The names of all sections of the settings."""
OPTIONS = tuple(
    f"{section}.options" for section in SECTIONS if "options" in hints_of(hints_of(Config)[section])
)
"""The tables for engines' own settings: `asr.options`, `llm.options` and `tts.options`."""
MAX_BYTES = 1 << 20
"""Largest size of a file of settings, in bytes."""
DEFAULT = "default"
"""The origin of values that are defaults."""
MEANT = {
    "llm.model": "llm.target",
    "llm.url": "llm.base_url",
    "mcpServers": "mcp.servers",
    "asr.voice": "tts.voice",
    "llm.voice": "tts.voice",
}
"""The right key of a setting, by a wrong key that users may try."""


def of_engine(key: str) -> bool:
    """Return whether a dotted key names an engine's own setting, such as `llm.options.NAME`."""
    table, _, name = key.rpartition(".")
    return table in OPTIONS and name != ""


def flatten(config: Config) -> dict[str, object]:
    """Return every value by dotted key: those of `KEYS` in order, then engines' own settings."""
    own = {
        f"{table}.{name}": value
        for table in OPTIONS
        for name, value in attrgetter(table)(config).items()
    }
    return {key: attrgetter(key)(config) for key in KEYS} | own


def assembled(values: Mapping[str, object]) -> Config:
    """Build settings from values by dotted key. A key that is missing has its default."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        *tables, name = key.split(".", 2)
        table = found
        for step in tables:
            table = table.setdefault(step, {})
        table[name] = value
    return msgspec.convert(found, Config)


Given = Mapping[str, tuple[object, str]]
"""Settings from files and flags by dotted key: each a value and its origin."""


def load_config(
    files: Iterable[Path] = (), flags: Mapping[str, str | list[str]] | None = None
) -> tuple[Config, dict[str, str]]:
    """Merge defaults, preset, `files` (the weakest first) and `flags`.

    `flags` has a text by dotted key, or a list of texts for a setting that is a list. Also return
    the origin of each value by dotted key: `default`, `preset NAME`, the path of a file, or `flag`.
    Raises ConfigError for a file that cannot be read, an unknown key, and a value of the wrong type
    or out of its range.
    """
    given: dict[str, tuple[object, str]] = {}
    for path in files:
        found = given_in(toml(path), path)
        given |= {key: (value, str(path)) for key, value in found.items()}
    for key, value in (flags or {}).items():
        given[key] = _checked(key, value, f"--{key.replace('_', '-')}", text=True), "flag"
    return merged(given)


def merged(given: Given, apart: Container[str] = ()) -> tuple[Config, dict[str, str]]:
    """Lay `given` over the preset and the defaults. Return the settings and the origin of each.

    The preset sets nothing in the sections in `apart`, nor in a section for which `given` has
    another engine than the preset.
    """
    values = {key: (value, DEFAULT) for key, value in flatten(Config()).items()}
    preset = str((values | {**given})["preset"][0])
    chosen = {key: (value, f"preset {preset}") for key, value in PRESETS[preset].items()}
    # The models of the preset are for its own engines, not for another that the user has chosen.
    usual = {key: value for key, (value, _) in (values | chosen).items()}
    others = {key for key in given if key.endswith(".engine") and given[key][0] != usual[key]}
    for key, value in chosen.items():
        section = key.partition(".")[0]
        if section not in apart and f"{section}.engine" not in others:
            values[key] = value
    values |= given
    config = assembled({key: value for key, (value, _) in values.items()})
    return config, {key: origin for key, (_, origin) in values.items()}


def given_in_settings(settings: Config, origins: Mapping[str, str]) -> Given:
    """Return the settings that come from files and flags, not from a default or the preset."""
    values = flatten(settings)
    preset = f"preset {settings.preset}"
    return {
        key: (values[key], origin)
        for key, origin in origins.items()
        if origin not in (DEFAULT, preset)
    }


def converted(kind: Any, value: object, where: str, *, text: bool, hint: str) -> Any:
    """Convert `value` to type `kind`. With `text`, numbers may be texts.

    Raises ConfigError if the value does not fit. Its message begins with `where`, the name of the
    value. It hints at the most similar choice, or else gives `hint`.
    """
    if NoneType in members(kind) and str(value).lower() == "none":  # help shows None as `none`
        return None
    try:
        found = read(kind, value, TOML, text=text)
        if found == math.inf:
            raise mismatch(kind, value, TOML)
    except Mistake as mistake:
        raise ConfigError(f"{where} {mistake}", mistake.hint or hint) from None
    return found


def toml(path: Path, hint: str = "docs/configuration.md has an example") -> dict[str, Any]:
    """Return the table in a TOML file.

    Raises ConfigError if it cannot be read, is larger than `MAX_BYTES` or is not TOML. `hint` tells
    what to do if the file is of a wrong kind.
    """
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(f"cannot read {path}: it is not a file", hint)
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise ConfigError(f"{path} is larger than {MAX_BYTES >> 20} MiB", hint)
        return tomllib.loads(text.decode("utf-8"))
    except OSError as error:
        raise ConfigError(
            f"cannot read {path}: {error.strerror}", "check its name and permissions"
        ) from error
    except (ValueError, RecursionError) as error:  # bad TOML, or not UTF-8
        raise ConfigError(f"{path} is not valid TOML: {error}", hint) from error


def leaves(table: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted key and the value of each setting in the `table` of a file.

    `within` is put before each key.
    """
    for name, value in table.items():
        key = f"{within}{name}"
        if key in (*SECTIONS, *OPTIONS) and isinstance(value, dict):
            yield from leaves(cast(dict[str, object], value), f"{key}.")
        else:
            yield key, value


def given_in(table: Mapping[str, Any], source: Path | str) -> dict[str, object]:
    """Return the settings in the table of a file or of a program, by dotted key. `source` is the
    origin that errors name.

    Raises ConfigError for an unknown key and a value that does not fit.
    """
    return {
        key: _checked(key, value, f"{source}: {one_line(key)}", text=False)
        for key, value in leaves(table)
    }


def _checked(key: str, value: object, where: str, *, text: bool) -> object:
    if of_engine(key):
        return value
    if key in (*SECTIONS, *OPTIONS):
        raise ConfigError(f"{where} is a section and takes no value", f"write it as [{key}]")
    if key not in KEYS:
        near = MEANT.get(key) or nearest(key, {*KEYS, *SECTIONS})
        raise ConfigError(
            f"{where} is not a setting",
            f"did you mean '{near}'?" if near else "`voiceloop config` lists all settings",
        )
    hint = "docs/configuration.md lists what each key takes"
    return converted(KEYS[key], value, where, text=text, hint=hint)


def meaning(key: str) -> str:
    """Return the docstring of a setting, by its dotted key."""
    section, _, name = key.rpartition(".")
    return meanings(hints_of(Config)[section] if section else Config)[name]
