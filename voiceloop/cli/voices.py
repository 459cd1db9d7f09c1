"""The command `voiceloop voices`: the voices on this machine, and those that can be pulled."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from typing import TYPE_CHECKING, Literal

from voiceloop import process
from voiceloop.assembly.choosing import best_settings
from voiceloop.catalog.cards import Card
from voiceloop.catalog.names import VOICES
from voiceloop.catalog.store import ModelStore, cards
from voiceloop.errors import ConfigError, ModelCorrupt, ModelNotFound
from voiceloop.languages.voices import KOKORO_LANGUAGES, VoiceInfo, described
from voiceloop.settings.config import TtsConfig, given_in_settings
from voiceloop.settings.flags import Command
from voiceloop.status import loading, print_error, tts_name
from voiceloop.terminal import size, tell

if TYPE_CHECKING:
    from voiceloop.engines import Tts

State = Literal["in use", "to choose", "here", "to pull"]
"""The state of a voice. `in use`: the configured one. `to choose`: another one of the configured
engine. `here`: on this machine, for another engine or model. `to pull`: it has to be pulled."""


class Voices(Command, frozen=True, kw_only=True):
    """List the voices here, by language, and those that can be pulled.

    The voice of `talk` and `serve` is marked.
    """

    uses = ("tts",)
    examples = ("voiceloop voices", "voiceloop voices --tts.engine espeak --json")

    json: bool = False
    """Print one JSON object on one line for each voice."""


def voices(command: Voices) -> int:
    """Run `voiceloop voices` and return the exit status."""
    config, _ = best_settings(command.settings, command.origins)
    named = "tts.engine" in given_in_settings(command.settings, command.origins)
    settings, tts, absent = config.tts, None, None
    with loading(tts_name(settings), sys.stderr):
        process.configure(config.threads)
        from voiceloop.assembly.loading import load_tts
        from voiceloop.engines import registered

        try:
            tts = load_tts(config)
        except ModelNotFound as error:  # the list shows how to pull it, and other voices
            absent = error
        found = listed(settings, tts)
    if command.json:
        print(*(json.dumps(one.record()) for one in found), sep="\n")
    else:
        for line in table(settings, tts, found, whole=named):
            tell(line)
        others = [name for name in sorted(registered("tts")) if name != settings.engine]
        tell(f"other engines, by --tts.engine: {', '.join(others)}")
    if absent:
        print_error(absent)
    return 0


@dataclass(frozen=True, slots=True)
class Listed:
    """A voice in the list."""

    voice: VoiceInfo
    state: State
    engine: str
    model: str = ""
    """For `piper` and `kokoro`: the model that contains the voice."""
    bytes: int | None = None
    """Size of the download, if the voice has to be pulled."""

    def record(self) -> dict[str, object]:
        """Return the fields of the voice for JSON."""
        voice = self.voice
        return {
            "name": voice.name,
            "label": voice.label,
            "language": voice.language,
            "language_name": voice.language_name,
            "state": self.state,
            "engine": self.engine,
            "model": self.model,
            "bytes": self.bytes,
        }


def listed(config: TtsConfig, tts: Tts | None, store: ModelStore | None = None) -> list[Listed]:
    """Return all voices, sorted by state, then by language and name.

    `tts` is the configured engine, or None if its model has to be pulled.
    """
    store = store or ModelStore()
    own = sorted(_of_engine(config, tts), key=_order) if tts else []
    at_hand = {one.voice.name for one in own}
    here = [one for one in _pulled(store) if one.voice.name not in at_hand]
    here.sort(key=lambda one: (one.engine, _order(one)))
    rest = _to_pull(card for card in cards() if store.find(card.name) is None)
    return [*own, *here, *sorted(rest, key=_order)]


def table(
    config: TtsConfig, tts: Tts | None, found: Sequence[Listed], *, whole: bool = True
) -> Iterator[str]:
    """Yield the lines of the list for a person: at most 80 columns, except for long names.

    The hundred languages of espeak come last, and only if the list is to be `whole`.
    """
    last, own = config.engine == "espeak" and whole, list[str]()
    if tts and config.engine == "espeak" and not whole:
        own = [f"{tts.name} speaks, with its voice {tts.voice}; a voice below sounds better", ""]
    elif tts:
        speaks = [one for one in found if one.state in ("in use", "to choose")]
        own = [f"{tts.name} speaks (*); --tts.voice NAME chooses another voice:", *_rows(speaks)]
    yield from [] if last else own
    for engine, kept in groupby((one for one in found if one.state == "here"), _engine):
        yield f"here as well, with {_flags(config, engine)}:"
        yield from _rows(kept)
    if rest := [one for one in found if one.state == "to pull"]:
        yield "can be pulled, by voiceloop models pull NAME:"
        yield from _rows(rest)
    more = "voiceloop voices --tts.engine espeak lists a hundred languages more"
    yield from own if last else [more]


def _of_engine(config: TtsConfig, tts: Tts) -> Iterator[Listed]:
    for name in tts.voices():
        voice = described(name, tts.language(name))
        yield Listed(voice, "in use" if name == tts.voice else "to choose", config.engine)


def _pulled(store: ModelStore) -> Iterator[Listed]:
    """Yield the voices of the models in the store."""
    from voiceloop.tts.piper import describe

    for model in store.models():
        if model.origin == "file" or store.find(model.name) is None:
            continue
        for name in _kokoro(model.files):
            yield Listed(described(name, ""), "here", "kokoro", model.name)
        with suppress(ModelNotFound, ModelCorrupt, ConfigError):  # most models are no voices
            piper = describe(model.folder, model.name)
            for name in piper.voices:
                yield Listed(described(name, piper.language), "here", "piper", model.name)


def _to_pull(absent: Iterable[Card]) -> Iterator[Listed]:
    """Yield the voices of models that can be pulled. If several cards have the same name, the first
    one counts."""
    for card in {card.name: card for card in reversed(list(absent))}.values():
        if card.kind in VOICES:
            for name in _kokoro(file.name for file in card.files) or [card.name]:
                yield Listed(described(name, ""), "to pull", card.kind, card.name, card.download)


def _kokoro(files: Iterable[str]) -> list[str]:
    """Return the voices of Kokoro among the files of a model, without unsupported languages."""
    paths = [PurePath(file) for file in files]
    voices = [path.stem for path in paths if path.parent.name == "voices"]
    return [voice for voice in voices if voice[0] in KOKORO_LANGUAGES]


def _order(one: Listed) -> tuple[bool, str, str, str]:
    """Return the sort key: language (unknown languages last), then model, then name."""
    language = one.voice.language_name
    return not language, language, one.model, one.voice.name


def _engine(one: Listed) -> str:
    return one.engine


def _flags(config: TtsConfig, engine: str) -> str:
    """Return flags that choose a voice of `engine`, e.g. `--tts.engine kokoro --tts.voice NAME`.

    They also choose a model if `config` names one, since it may be that of another engine.
    """
    if engine == "piper":
        return f"--tts.engine piper {'--tts.model' if config.model else '--tts.voice'} NAME"
    model = f" --tts.model {VOICES[engine][1]}" if config.model else ""
    return f"--tts.engine {engine}{model} --tts.voice NAME"


def _rows(found: Iterable[Listed]) -> Iterator[str]:
    """Yield a line for each language, and below it its voices: mark, name, description, size.

    The mark `*` is for the configured voice.
    """
    for language, spoken in groupby(found, lambda one: one.voice.language_name):
        yield f"  {language or 'other languages'}"
        for name, mark, description, count in _cells(list(spoken)):
            yield f"  {mark} {name:<26} {description:<38} {count:>8}".rstrip()
    yield ""


def _cells(spoken: Sequence[Listed]) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, mark, description and size of the voices of one language.

    Several voices of one model that has to be pulled share a line.
    """
    for model, together in groupby(spoken, lambda one: one.model):
        some = list(together)
        if some[0].state == "to pull" and len(some) > 1:
            people = sorted({one.voice.label.split(", ")[-1].split()[0] for one in some})
            yield model, " ", f"{len(some)} voices: {', '.join(people)}", size(some[0].bytes or 0)
            continue
        for one in some:
            description = "" if one.voice.label == one.voice.name else one.voice.label
            mark = "*" if one.state == "in use" else " "
            name = model if one.state == "to pull" else one.voice.name
            yield name, mark, description, size(one.bytes) if one.bytes else ""
