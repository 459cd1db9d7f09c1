"""Settings: nested structs with a default for everything, and how files change them.

Defaults < preset < user file < ./voiceloop.toml < --config FILE < flags. A wrong key or value is a
ConfigError that names the key, where it came from and what was expected. ./voiceloop.toml applies
to whoever enters its folder, so it may not set what is in `GUARDED`. This module does not know what
a setting does, nor how a command line is parsed.
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Container, Iterable, Iterator, Mapping
from operator import attrgetter
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta, field

from voiceloop.errors import ConfigError
from voiceloop.schema import (
    TOML,
    Count,
    Fraction,
    Mistake,
    Object,
    Positive,
    Texts,
    hints_of,
    is_struct,
    members,
    mismatch,
    nearest,
    one_line,
    read,
)

Quantize = Literal["none", "int8", "int4"]
"""What large matrices of a language model are rounded to."""
Penalty = Annotated[float, Meta(ge=-2, le=2)]


Options = Mapping[str, object]
"""Settings of an engine's own, which it alone knows: `voiceloop.engines.load` reads them."""


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
    list`), a folder with a CTranslate2 Whisper model, or a repository of the hub."""
    language: str = "en"
    """What is spoken: a two-letter code, or `auto`. That detects it in each turn until one tells it
    for sure, by a model that knows several. In English, German and Spanish the last words tell that
    a turn goes on; in others silence alone ends it."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where the model runs; `auto` takes the GPU where there is one that works."""
    compute_type: Literal["auto", "int8", "float16", "float32"] = "auto"
    """How CTranslate2 stores and multiplies weights. On a CPU Whisper's encoder is voiceloop's own,
    in 32 bits."""
    beam_size: Positive = 1
    """Beams of the final decode; partials are always greedy."""
    pad_s: Annotated[float, Meta(ge=0, le=30)] | None = 0.5
    """Silence behind the speech that is encoded in full for Whisper on a CPU, in seconds; of the
    rest, what speech changes in it. none: all that fills the window of 30 seconds that it was
    trained on, which takes several times as long. The starter model, which was trained on windows
    of any length, needs none."""
    partial_every_ms: Annotated[int, Meta(ge=20)] = 240
    """Least new audio between two partial decodes, in milliseconds; those that take long are
    further apart."""
    options: Options = field(default_factory=dict[str, object])
    """Settings of an engine's own, by name: the table `[asr.options]`, or `--asr.options.NAME`. The
    engines that come with voiceloop have none."""

    @property
    def hears_no_people(self) -> bool:
        """It is the starter's recogniser, which was trained on synthetic voices alone."""
        return self.engine == "whisper" and self.model == "starter"


class LlmConfig(Object, frozen=True):
    """The language model that replies.

    Its fields are settings, as in every group of them.
    """

    engine: str = "speculative"
    """`speculative`, in this process, or `openai`, any server that speaks OpenAI's protocol; or an
    engine of your own by its name (docs/engines.md)."""
    base_url: str = ""
    """For `openai`: where the server is, such as `http://localhost:11434/v1`."""
    timeout_s: Annotated[float, Meta(ge=0.1)] = 20.0
    """For `openai`: a server that says nothing for so long, in seconds, is given up."""
    target: str = "starter"
    """The model that replies. `starter`, one that has been pulled (`smollm2-135m-instruct`;
    `voiceloop models list`), a folder, a GGUF file, or a repository of the hub; for `openai` its
    name there."""
    draft: str = "auto"
    """What drafts tokens: a smaller model named like the target, the folder of a draft that was
    trained for it (`voiceloop train-draft`), `ngram` (what was said before, no second model),
    `none`; `auto` is the starter's own draft for the starter target, for others the trained draft
    that ships for them (SmolLM2-135M-Instruct of the packages has one), or `ngram`."""
    draft_tokenizer: str = ""
    """Where the draft's tokenizer is, if not in its folder: another folder, or a model by name."""
    num_speculative_tokens: Count | Literal["auto"] = "auto"
    """Draft tokens a round; `auto` follows measured step costs and acceptance."""
    draft_tree: Literal["auto", "on", "off"] = "auto"
    """Whether several tokens are drafted for one place where that is measured to pay; only where
    the number of draft tokens is `auto`, and not in rejection sampling. `auto` lets drafts do so
    that were trained for the target; where others are right, they mostly are at once."""
    branches: Annotated[int, Meta(ge=0, le=16)] = 0
    """Replies that are begun in idle time to what the user is likely to say next, at most so many
    at once; whichever begins as the real one does is its draft. 0 begins none."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where both models run; `auto` takes the GPU where there is one: CUDA's, else Apple's."""
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    """Type of the weights; `auto` is float32 on the CPU and the checkpoint's own elsewhere."""
    quantize: Quantize = "none"
    """Round the large matrices of target and draft as they are loaded, on CUDA, with the extra
    `quantize`. That changes the target, whose replies are then another model's. `int8` takes about
    half of the memory of 16 bits, `int4` a quarter; embeddings stay as they are."""
    temperature: Annotated[float, Meta(ge=0)] = 0.0
    """0 is greedy."""
    top_k: Count = 0
    """Sample among the k likeliest tokens; 0 keeps all."""
    top_p: Fraction = 1.0
    """Sample among the likeliest tokens that together have this probability; 1 keeps all."""
    min_p: Fraction = 0.0
    """Sample among the tokens at least this likely next to the likeliest; 0 keeps all."""
    repetition_penalty: Annotated[float, Meta(ge=0.01)] = 1.0
    """Makes tokens that the conversation's replies and the user's last words have used less likely
    where above 1."""
    presence_penalty: Penalty = 0.0
    """Taken from the score of tokens that the reply has used."""
    frequency_penalty: Penalty = 0.0
    """Taken from a token's score for each time that the reply has used it."""
    stop: Texts = ()
    """Texts before which a reply ends."""
    verification: Literal["coupled", "rejection"] = "coupled"
    """How draft tokens are verified where tokens are sampled; neither changes what is likely to be
    said. `coupled` gives the same text whatever the draft, but for ties; `rejection` accepts
    more."""
    seed: Count | Literal["auto"] = "auto"
    """Seed of the sampling noise; `auto` draws one for each conversation, and traces tell it."""
    best_of: Annotated[int, Meta(ge=1, le=16)] = 1
    """Replies that are begun for each turn, of which the best is said: candidates with seeds of
    their own, computed together, where tokens are sampled. 1 begins one, as it is."""
    best_of_for: Literal["clause", "reply"] = "clause"
    """What candidates are judged by: their first clauses, after which the best goes on alone, or
    whole replies, which have to be there before the first word is said."""
    scorer: str = "likelihood"
    """What is best: `likelihood`, the target's mean log-likelihood of a token; `concise`, little
    repetition and not too many words; or a function of your own by its name (docs/engines.md)."""
    max_new_tokens: Positive = 100
    """Longest reply, in tokens. It ends with a sentence: with the one that three fifths of them
    lie in. Whoever wants to hear more asks for it ("go on")."""
    thinking: Literal["off", "on"] = "off"
    """For `openai`: `off` asks the model not to think before it speaks, where the server takes
    that; `on` leaves it to the model. In this process no model thinks."""
    max_thought_tokens: Positive = 1024
    """For `openai`: longest thought before a reply, in tokens, which `max_new_tokens` does not
    count; one that is longer is cut off."""
    context: Positive = 2048
    """Tokens each conversation's cache holds."""
    cache_mb: Count = 2048
    """Memory for the caches of all conversations, in MiB. What does not fit is forgotten while it
    is idle, the longest unused first, and read again when it is needed."""
    system: str = "auto"
    """System prompt; `auto` asks for short replies that are made to be heard, of models other than
    the starter that take a system prompt. Empty: none."""

    skills: Literal["rules", "tools", "none"] = "rules"
    """What is answered without the language model. `rules`: the time, timers, sums, units and
    commands such as "stop", in English, German and Spanish, where a rule is sure of what is asked.
    `tools`: besides, models whose chat template knows tools are offered these to call. `none`: the
    model answers everything. What a client of the server sets up by instructions or tools of its
    own goes without."""
    options: Options = field(default_factory=dict[str, object])
    """Settings of an engine's own, by name: the table `[llm.options]`, or `--llm.options.NAME`. The
    engines that come with voiceloop have none."""

    @property
    def answers_little(self) -> bool:
        """It is the starter's language model, which was trained for a few kinds of questions."""
        return self.engine == "speculative" and self.target == "starter"

    @property
    def often_wrong(self) -> bool:
        """It is the small language model of preset cpu."""
        return self.engine == "speculative" and self.target == PRESETS["cpu"]["llm.target"]


class TtsConfig(Object, frozen=True):
    """Speech synthesis."""

    engine: str = "espeak"
    """`espeak`, `piper`, `kokoro` or `coqui`; or an engine of your own by its name
    (docs/engines.md)."""
    model: str = ""
    """For `piper` a voice that has been pulled (`en_US-joe-medium`), a folder or an .onnx file; for
    `kokoro` one that has been pulled (`kokoro-82m`) or a folder; for `coqui` a folder or a voice's
    name there. Empty is the engine's own."""
    voice: str = ""
    """Name of a voice; `voiceloop voices` lists them: of `espeak` a language such as `en-gb`, of
    `piper` a model or a speaker in it, of `kokoro` a voice such as `af_heart`, of `coqui` a
    speaker. Empty is the engine's first. With XTTS a language may follow (`Claribel Dervla@de`;
    without, English), and the name may be that of a recording of somebody who agrees to it
    (`me.wav@de`)."""
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """Where a voice of Coqui TTS or Piper runs; `auto` takes CUDA's GPU where there is one, for
    Piper where onnxruntime-gpu is installed. The other engines run on the CPU."""
    speed: Annotated[float, Meta(ge=0.5, le=2.5)] = 1.0
    """Pace of the voice; 1 is its own."""
    options: Options = field(default_factory=dict[str, object])
    """Settings of an engine's own, by name: the table `[tts.options]`, or `--tts.options.NAME`. The
    engines that come with voiceloop have none."""


class TurnConfig(Object, frozen=True):
    """When the user has begun and ended.

    Its fields are settings, as in every group of them.
    """

    threshold: Fraction = 0.5
    """Speech probability at which a frame counts as voiced."""
    release: Fraction = 0.35
    """Speech probability below which speech, once begun, counts as silence."""
    min_speech_ms: Count = 64
    """Voiced audio that makes a beginning."""
    pause_ms: Count = 32
    """Silence at which the end of the turn is guessed and the final decode begins."""
    pause_below: Fraction = 0.95
    """Speech probability below which a frame that is as quiet as the background begins a pause too:
    the voice detector notices an end late, and a guess costs little. 0 leaves it to `release`."""
    endpoint: Literal["auto", "p-eot", "trailing-words", "fixed"] = "auto"
    """What tells whether the user has finished: the language model's probability that a turn ends
    here, the last word, or nothing. `auto` asks the model once it is calibrated, if it judges
    better than the last word, and the last word until then."""
    sound: str = "none"
    """A model that judges by the sound of the voice whether a turn is over, or `none`; it has a say
    wherever the language model has one. `smart-turn-v3.2`, once it has been pulled, knows real
    voices; of synthetic ones it can tell little."""
    hangover_ms: Count = 500
    """Silence that ends the user's turn where no probability tells whether they have finished, and
    their last words do not ask for more. No less does where they go on after a pause that was taken
    for the end. Where a model judges by the sound, less does the likelier the end is."""
    complete_ms: Count = 88
    """Least silence that ends a turn that is evidently complete; a language model whose judgement
    is less certain waits longer, as its calibration says."""
    incomplete_ms: Annotated[int, Meta(ge=0, le=1200)] = 1100
    """Silence that ends a turn that is evidently not, or whose words are not known yet."""
    pre_roll_ms: Count = 300
    """Audio before the beginning that is recognised too."""
    max_turn_s: Annotated[float, Meta(ge=1)] = 60.0
    """A longer turn is ended where it stands."""
    max_guesses: Count | Literal["auto"] = "auto"
    """Replies begun before the end of a turn, where the words or a silence may be it; 0 begins
    none. `auto` is 6, and 0 where the language model may be one that is paid for by the token."""


class ServerConfig(Object, frozen=True):
    """What `voiceloop serve` gives to its clients.

    Its fields are settings, as in every group of them.
    """

    max_sessions: Positive = 4
    """Clients at once; as many sessions again may wait for theirs to come back."""
    max_sessions_per_key: Positive = 4
    """Clients of one API key at once; without keys all count as one."""
    max_parked_per_key: Positive = 2
    """Sessions of one key that wait for their client to come back; the oldest goes first."""
    resume_s: Annotated[float, Meta(ge=0)] = 60.0
    """How long a session waits for a client whose connection broke, in seconds; 0: not at all."""
    session_s: Annotated[float, Meta(ge=1)] = 3600.0
    """Longest session, in seconds, as clients of the protocol expect it."""
    idle_s: Annotated[float, Meta(ge=1)] = 600.0
    """A client that sends nothing for so long, in seconds, has gone."""
    ping_s: Annotated[float, Meta(ge=0.1)] = 20.0
    """How often a client is asked whether it is there, and how long it may take to answer."""
    audio_ahead_s: Annotated[float, Meta(ge=1)] = 60.0
    """Audio that a client may send ahead of real time, in seconds."""
    audio_backlog_s: Annotated[float, Meta(ge=1)] = 60.0
    """Audio that may wait for recognition, in seconds."""
    messages_per_s: Positive = 200
    """Messages a second that a client may send for long; audio in frames of 20 ms is 50."""
    messages_burst: Positive = 1000
    """Messages that it may send at once."""
    prefill_tokens_per_min: Positive = 120_000
    """Tokens a minute that the language model reads for a session."""
    generated_tokens_per_min: Positive = 12_000
    """Tokens a minute that it writes, heard or not."""
    conversation_bytes: Positive = 1_048_576
    """Text, instructions and tools that a session may hold, in bytes of UTF-8."""


class Config(Object, frozen=True):
    """Everything that can be set."""

    preset: Literal["starter", "cpu", "laptop", "small", "best"] = "starter"
    """The models, all at once; `voiceloop models list` says what each preset is good for and needs.
    `starter` ships with voiceloop, the others are pulled (`voiceloop models pull laptop`). Where
    none is named, `talk` and `serve` take the best that has been pulled."""
    threads: Annotated[int, Meta(ge=0, le=256)] = 0
    """Threads of torch, ctranslate2 and onnxruntime each; 0 takes half of the cores that the
    process may use, and all of them for what is large: Whisper's encoder, and long passes of most
    language models."""
    place: str = ""
    """Where the user is, such as `Lisbon, Portugal`; language models are told."""
    timezone: str = ""
    """What the clock is read in, such as `Europe/Lisbon`; empty: this machine's."""
    vad: VadConfig = VadConfig()
    asr: AsrConfig = AsrConfig()
    llm: LlmConfig = LlmConfig()
    tts: TtsConfig = TtsConfig()
    turns: TurnConfig = TurnConfig()
    server: ServerConfig = ServerConfig()


PRESETS: Mapping[str, Mapping[str, object]] = {
    "starter": {},
    "cpu": {
        "asr.model": "tiny.en",
        "llm.target": "smollm2-135m-instruct",
        "llm.repetition_penalty": 1.1,  # without it half of its sentences are said before
        "turns.sound": "smart-turn-v3.2",
        "tts.engine": "piper",
        "tts.model": "en_US-joe-medium",
    },
    "laptop": {
        "asr.model": "base.en",
        "llm.target": "qwen2.5-1.5b-instruct-q4",
        "llm.cache_mb": 256,  # four conversations, beside 1.1 GB of weights
        "turns.sound": "smart-turn-v3.2",
        "tts.engine": "piper",
        "tts.model": "en_US-joe-medium",
    },
    "small": {
        "asr.model": "small.en",
        "llm.target": "qwen2.5-1.5b-instruct",
        "llm.draft": "qwen2.5-0.5b-instruct",
        "turns.sound": "smart-turn-v3.2",
        "tts.engine": "piper",
        "tts.model": "en_US-joe-medium",
    },
    "best": {
        "asr.model": "large-v3-turbo",
        "llm.target": "qwen3-4b-instruct-2507",
        "llm.draft": "qwen3-0.6b",
        "turns.sound": "smart-turn-v3.2",
        "tts.engine": "piper",
        "tts.model": "en_US-joe-medium",
    },
}
"""What each preset sets, by dotted key."""


def _hints(kind: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, hint in hints_of(kind).items():
        if is_struct(hint):
            yield from _hints(hint, f"{prefix}{name}.")
        elif hint != Options:
            yield f"{prefix}{name}", hint


KEYS: Mapping[str, Any] = dict(_hints(Config))
"""The type of every setting, by dotted key (`asr.model`)."""
SECTIONS = tuple(dict.fromkeys(key.partition(".")[0] for key in KEYS if "." in key))
"""The names of the sections that settings stand in."""
OPTIONS = tuple(
    f"{section}.options" for section in SECTIONS if "options" in hints_of(hints_of(Config)[section])
)
"""The tables of settings of an engine's own."""
GUARDED = frozenset(
    {key for key in KEYS if key.endswith(".engine") or key.startswith("server.")}
    | {
        "asr.model",
        "llm.base_url",
        "llm.target",
        "llm.draft",
        "llm.draft_tokenizer",
        "llm.scorer",
        "tts.model",
        "tts.voice",
        "turns.sound",
    }
)
"""What a file that merely lies in the current folder may not set: code that is loaded, weights and
recordings that are read or fetched by a name of the file's own, where what is said is sent, and the
limits that protect a server. Nor may it set what is an engine's own, which may be any of these."""
MAX_BYTES = 1 << 20
"""Largest file of settings, or scenario."""
DEFAULT = "default"
"""The origin of what nobody has given."""
LOCAL = "voiceloop.toml"
"""The file that is read from the current folder."""
MEANT = {
    "llm.model": "llm.target",
    "llm.url": "llm.base_url",
    "asr.voice": "tts.voice",
    "llm.voice": "tts.voice",
}
"""Settings by names that they might well have."""


def of_engine(key: str) -> bool:
    """Whether a dotted key is that of a setting of an engine's own."""
    table, _, name = key.rpartition(".")
    return table in OPTIONS and name != ""


def flatten(config: Config) -> dict[str, object]:
    """Every value by dotted key, in the order of `KEYS`; then those of engines' own settings."""
    own = {
        f"{table}.{name}": value
        for table in OPTIONS
        for name, value in attrgetter(table)(config).items()
    }
    return {key: attrgetter(key)(config) for key in KEYS} | own


def assembled(values: Mapping[str, object]) -> Config:
    """The settings whose values are given by dotted key; the others are the defaults."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        *tables, name = key.split(".", 2)
        table = found
        for step in tables:
            table = table.setdefault(step, {})
        table[name] = value
    return msgspec.convert(found, Config)


def user_file(environ: Mapping[str, str] = os.environ) -> Path:
    """The user's own file of settings, be it there or not."""
    base = environ.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "voiceloop" / "config.toml"


def config_files(
    file: Path | None = None, *, environ: Mapping[str, str] = os.environ, folder: Path = Path()
) -> list[Path]:
    """The configuration files that apply, the weakest first; `file` is the one of --config.

    Raises ConfigError where the file that lies in `folder` sets what is in `GUARDED`; naming that
    file with --config says that it is trusted.
    """
    user = user_file(environ)
    found = [user] if user.is_file() else []
    local = folder / LOCAL
    if local.is_file() and not (file and file.exists() and file.samefile(local)):
        set_there = [key for key, _ in leaves(toml(local))]
        refused = [key for key in set_there if key in GUARDED or of_engine(key)]
        if refused:
            raise ConfigError(
                f"{local} sets {', '.join(refused)}, which a file that is merely found in the "
                "current folder may not",
                f"if you trust it, name it: --config {local}",
            )
        found.append(local)
    return found if file is None else [*found, file]


Given = Mapping[str, tuple[object, str]]
"""Settings that somebody has given: the value and where it comes from, by dotted key."""


def load_config(
    files: Iterable[Path] = (), flags: Mapping[str, str | list[str]] | None = None
) -> tuple[Config, dict[str, str]]:
    """Merge defaults, preset, `files` (the weakest first) and `flags` (text by dotted key, or
    several where the setting is a list).

    Also returns the origin of each value by dotted key: `default`, `preset NAME`, the path of a
    file, or `flag`. Raises ConfigError for a file that cannot be read, a key that does not exist,
    and a value of the wrong type or out of its range.
    """
    given: dict[str, tuple[object, str]] = {}
    for path in files:
        found = given_in(toml(path), path)
        given |= {key: (value, str(path)) for key, value in found.items()}
    for key, value in (flags or {}).items():
        given[key] = _checked(key, value, f"--{key.replace('_', '-')}", text=True), "flag"
    return merged(given)


def merged(given: Given, apart: Container[str] = ()) -> tuple[Config, dict[str, str]]:
    """What is `given`, over what the preset sets, over the defaults, with the origin of each.

    Of the sections in `apart` the preset sets nothing.
    """
    values = {key: (value, DEFAULT) for key, value in flatten(Config()).items()}
    preset = str((values | {**given})["preset"][0])
    chosen = {key: (value, f"preset {preset}") for key, value in PRESETS[preset].items()}
    # An engine of the user's choice has models of its own.
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
    """What of the settings somebody has given: neither defaults, nor set by the preset."""
    values = flatten(settings)
    preset = f"preset {settings.preset}"
    return {
        key: (values[key], origin)
        for key, origin in origins.items()
        if origin not in (DEFAULT, preset)
    }


def converted(kind: Any, value: object, where: str, *, text: bool, hint: str) -> Any:
    """`value` as type `kind`, read from text if `text`.

    Raises ConfigError where it does not fit, with the nearest choice as the hint, or else `hint`.
    """
    if NoneType in members(kind) and str(value).lower() == "none":  # help writes it as Python does
        return None
    try:
        found = read(kind, value, TOML, text=text)
        if found == math.inf:
            raise mismatch(kind, value, TOML)
    except Mistake as mistake:
        raise ConfigError(f"{where} {mistake}", mistake.hint or hint) from None
    return found


def toml(path: Path, hint: str = "docs/configuration.md has an example") -> dict[str, Any]:
    """The table in a file. Raises ConfigError, with `hint` where it holds none."""
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
    """The values of a file's table by dotted key."""
    for name, value in table.items():
        key = f"{within}{name}"
        if key in (*SECTIONS, *OPTIONS) and isinstance(value, dict):
            yield from leaves(cast(dict[str, object], value), f"{key}.")
        else:
            yield key, value


def given_in(table: Mapping[str, Any], path: Path) -> dict[str, object]:
    """The settings in the table of a file, by dotted key. Raises ConfigError for what is none."""
    return {
        key: _checked(key, value, f"{path}: {one_line(key)}", text=False)
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
