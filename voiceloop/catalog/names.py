"""Finds the folder of a model by its name. Only this module knows what a name may be.

A name is looked up in this order: a model that has been pulled, a card (which says how to pull the
model), a folder, a GGUF or ONNX file, a repository of the hub. A folder that is called like a card
is named by its path: `./tiny.en`.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from voiceloop.catalog.cards import Card, Kind, preset_models, variants
from voiceloop.catalog.fetch import progress
from voiceloop.catalog.piper import require, split_piper
from voiceloop.catalog.pull import WANTED, cached, order_repo, pull
from voiceloop.catalog.store import ModelStore, cards, explained, make_room
from voiceloop.errors import ConfigError, ModelCorrupt, ModelNotFound
from voiceloop.settings.config import Config, TtsConfig
from voiceloop.settings.presets import PRESETS
from voiceloop.settings.schema import nearest
from voiceloop.terminal import size

FOLDERS = {
    "asr": "make the folder with: ct2-transformers-converter --model MODEL --output_dir FOLDER "
    "--copy_files tokenizer.json preprocessor_config.json",
    "llm": "name the folder that holds config.json, the weights and the tokenizer, or a .gguf file",
    "piper": "name a voice's .onnx file, with its .onnx.json beside it, or its folder",
    "kokoro": "name a folder that holds kokoro-v1.0.onnx and voices-v1.0.bin",
    "turn": "voiceloop models pull fetches it",
}
"""Hints for a path that leads to no model, by kind of model."""
FILES: Mapping[str, Kind] = {".gguf": "llm", ".onnx": "piper"}
"""Kinds of models that are single files, by suffix."""
PIPER = "en_US-joe-medium"
"""The voice of Piper that speaks unless another is configured."""
KOKORO = "kokoro-82m"
"""The model of Kokoro that speaks unless another is configured."""
VOICES: Mapping[str, tuple[Kind, str]] = {"piper": ("piper", PIPER), "kokoro": ("kokoro", KOKORO)}
"""Kind and default name of the model that speaks, by engine."""
KINDS: Mapping[Kind, str] = {
    "asr": "a recogniser",
    "llm": "a language model",
    "piper": "a voice of Piper",
    "kokoro": "a model of Kokoro",
    "turn": "a model that hears whether a turn is over",
}
HEADINGS: Mapping[Kind, str] = {
    "asr": "recognisers",
    "llm": "language models",
    "piper": "voices for --tts.engine piper",
    "kokoro": "voices for --tts.engine kokoro",
    "turn": "models that hear whether a turn is over",
}
"""Headings of lists of models, by kind."""
NO_MODEL = ("starter", "auto", "ngram", "none")
"""Values of settings that stand in place of a model's name but name no model to fetch."""


def find(name: str, kind: Kind, store: ModelStore | None = None, *, make: bool = True) -> Path:
    """Return the folder of the model called `name`, or its GGUF file if that is named. Fetch or
    convert it first, if that is needed.

    Only repositories of the hub are fetched, and only ONNX files are converted. If `make` is False,
    nothing is fetched or converted. Raises ModelNotFound, with a hint, if the folder does not exist
    and is not made. Raises Unreachable, ModelCorrupt, MissingExtra, and VoiceloopError if the disk
    is full.
    """
    store = store or ModelStore()
    of_kind = variants(cards(), name, kind)
    if (of_kind or "/" in name) and (model := store.find(name)):
        return model.folder
    path = Path(name).expanduser()
    if path.is_dir() and not of_kind:  # else whose folder it is would choose the weights
        return path
    of_file = FILES.get(path.suffix)
    if path.is_file() and of_file == kind:
        return path if kind == "llm" else _converted(path.resolve(), store, make)
    if path.exists() and not of_kind:
        raise ModelNotFound(f"{name} is a file, not the folder of a model", FOLDERS[kind])
    # A name that is written like a path is never looked up elsewhere.
    written = name.startswith((".", "~")) or name.endswith("/") or "\\" in name
    if written or path.is_absolute() or name.count("/") > 1 or of_file:
        what = "file" if of_file else "folder"
        raise ModelNotFound(f"there is no {what} {name}", "check the path")
    if of_kind:
        raise missing([of_kind[0]], name, store)
    if others := variants(cards(), name):
        other = others[0].kind
        raise ModelNotFound(
            f"{name} is {KINDS[other]}, and {KINDS[kind]} is needed",
            f"--tts.engine {other} speaks with it"
            if other in VOICES
            else "`voiceloop models list` tells which are which",
        )
    if "/" not in name:
        known = {card.name for card in cards() if card.kind == kind}
        near = nearest(name, {*known, "starter"})
        raise ModelNotFound(
            f"there is no model called '{name}'",
            f"did you mean '{near}'?" if near else "`voiceloop models list` names them all",
        )
    if kind not in WANTED:
        raise ModelNotFound(
            f"{name} is no model here, and the hub's repositories have none of this kind to fetch",
            f"`voiceloop models list` names {KINDS[kind]} to pull; or name a folder",
        )
    return _repository(name, kind, store, make)


def named(config: Config) -> dict[str, tuple[Kind, str]]:
    """Return the kind and the name of each model that `config` names, by setting, e.g.
    `asr.model`."""
    found: dict[str, tuple[Kind, str]] = {}
    if config.asr.engine == "whisper":
        found["asr.model"] = "asr", config.asr.model
    if config.llm.engine == "speculative":
        found |= {"llm.target": ("llm", config.llm.target), "llm.draft": ("llm", config.llm.draft)}
    if config.tts.engine in VOICES:
        found["tts.model"] = VOICES[config.tts.engine][0], voice_model(config.tts)
    if variants(cards(), config.turns.sound, "turn"):
        found["turns.sound"] = "turn", config.turns.sound
    return found


def prepare(config: Config, store: ModelStore | None = None) -> None:
    """Make sure that all models of `config` are on this machine, before any is loaded.

    One error names all models that have to be pulled first. Repositories are fetched now, and files
    are converted. Raises what `find` raises.
    """
    store = store or ModelStore()
    if config.llm.engine == "speculative" and config.llm.base_url:
        raise ConfigError(
            "llm.base_url is set, and llm.engine is speculative, which runs in this process",
            "add --llm.engine openai, or leave the address out",
        )
    absent: dict[str, Card] = {}
    others: list[tuple[str, Kind]] = []
    for key, (kind, name) in named(config).items():
        cards_of = variants(cards(), name, kind)
        if cards_of and not store.find(name):
            absent[key] = cards_of[0]
        elif not cards_of and name not in NO_MODEL:
            others.append((name, kind))
    if absent:
        preset = preset_models(config.preset)
        whole = all(preset.get(key) == card.name for key, card in absent.items())
        unique = {card.name: card for card in absent.values()}
        word = config.preset if whole else " ".join(unique)
        raise missing(list(unique.values()), word, store)
    for name, kind in others:
        find(name, kind, store)


def voice_model(config: TtsConfig) -> str:
    """Return the name or path of the model that speaks with `config`. Its engine is one of
    `VOICES`.

    Without `config.model`, the model of Piper comes from the voice's name: `model/speaker`.
    """
    named = config.voice.partition("/")[0] if config.engine == "piper" else ""
    return config.model or named or VOICES[config.engine][1]


def missing(absent: Sequence[Card], word: str, store: ModelStore) -> ModelNotFound:
    """Return the error for models that are damaged or not pulled. `absent` has their cards. The
    hint is the command that pulls `word`, a preset or names."""
    damaged = [
        card.title
        for card in absent
        if any(store.known(card.name, origin) for origin in ("hub", "packages"))
    ]
    if damaged:
        return ModelNotFound(
            f"{', '.join(damaged)}: files are missing, or shorter than they were",
            f"voiceloop models pull {word}",
        )
    if word in PRESETS and [card.name for card in absent] == [word]:
        word = f"whisper-{word}"
    names = ", ".join(card.title for card in absent)
    total = size(sum(card.download for card in absent))
    return ModelNotFound(
        f"{names} {'is' if len(absent) == 1 else 'are'} not on this machine ({total})",
        f"voiceloop models pull {word}",
    )


def _repository(repo: str, kind: Kind, store: ModelStore, make: bool) -> Path:
    """Return the folder of a hub model. Fetch it unless huggingface_hub's cache has it."""
    if folder := cached(repo, kind):
        return folder
    if not make:
        raise ModelNotFound(
            f"{repo} of the hub is not on this machine", "it is fetched when it is first used"
        )
    order = order_repo(repo, kind)
    with progress(f"fetching {repo} ({size(order.download)})", order.download) as bar:
        return pull(order, store, bar).folder


def _converted(file: Path, store: ModelStore, make: bool) -> Path:
    """Return the folder of a voice of Piper, and convert its file if that has not been done.

    A file that has been converted is recognised by path, size and time. The JSON file beside it,
    `voice.onnx.json`, is part of the model.
    """
    parts = [path for path in (file, file.with_name(f"{file.name}.json")) if path.is_file()]
    stats = [path.stat() for path in parts]
    total = sum(stat.st_size for stat in stats)
    seen = {"path": str(file), "bytes": total, "mtime_ns": max(stat.st_mtime_ns for stat in stats)}
    digest = hashlib.sha256(repr(seen).encode()).hexdigest()
    if model := store.find(digest, "file"):
        return model.folder
    if not make:
        raise ModelNotFound(
            f"{file} has not been converted yet", "it is converted when it is first used"
        )
    require()
    with store.workshop(digest, "file") as shop:
        make_room(shop, 2 * total)
        with progress(f"converting {file.name}, once", total):
            try:
                split_piper(file, shop / "made")
            except ModelCorrupt:  # another try cannot use anything in the workshop
                shutil.rmtree(shop)
                raise
        with explained(shop):
            return store.put(shop / "made", digest, "file", seen).folder
