"""Chooses the default preset of `talk` and `serve`: the best preset whose models are all pulled.

It does not replace models that the user has named. This module fetches nothing.
"""

from __future__ import annotations

from voiceloop.catalog.cards import Card, preset_models, variants
from voiceloop.catalog.store import ModelStore, cards
from voiceloop.config import Config, Given, merged
from voiceloop.placement import gpu_memory, total_memory
from voiceloop.presets import BEST_FIRST, STARTER, Machine, Preset
from voiceloop.threads import available_cores
from voiceloop.voices import piper_name

BEST_PULLED = "best pulled, for talk and serve"
"""Origin of the setting `preset`, as shown to users, if `best_pulled` chose it."""
NAMING = frozenset(
    {
        *("asr.engine", "asr.model", "llm.engine", "llm.base_url", "llm.target"),
        *("tts.engine", "tts.model", "tts.voice", "turns.sound"),
    }
)
"""Settings that name a model, or the engine that runs it."""


def this_machine() -> Machine:
    """Return the cores and the memory of this machine, to compare with the needs of presets."""
    return Machine(available_cores(), total_memory(), gpu_memory)


def named_sections(given: Given) -> set[str]:
    """Return the sections of the settings in which a model or its engine is named. The name of one
    of Piper's voices does not count, since the engine of the presets has these voices."""
    own = "tts.voice" in given and piper_name(str(given["tts.voice"][0])) is not None
    return {key.partition(".")[0] for key in given if key in NAMING - {"tts.voice" * own}}


def wanted(preset: Preset, given: Given) -> list[str]:
    """Return the names of a preset's models, each once. `given` are the user's settings. A section
    in which the user named a model or an engine, e.g. `tts`, is left out."""
    named = named_sections(given)
    models = preset_models(preset.name)
    return list(dict.fromkeys(models[key] for key in models if key.partition(".")[0] not in named))


def absent(preset: Preset, given: Given, store: ModelStore) -> list[Card]:
    """Return a card for each of the `wanted` models that is not pulled, the hub's card if there is
    one."""
    return [
        variants(cards(), name)[0] for name in wanted(preset, given) if store.find(name) is None
    ]


def way_to(preset: Preset, store: ModelStore, *, chooses: bool) -> str:
    """Return what brings `preset` to the user: a command, an option, or both. It is a command alone
    if what the user runs `chooses` the best preset that has been pulled."""
    if not absent(preset, {}, store):
        return f"--preset {preset.name}"
    return f"voiceloop models pull {preset.name}" + f", then --preset {preset.name}" * (not chooses)


def best_pulled(given: Given, machine: Machine, store: ModelStore) -> str | None:
    """Return the best preset that the machine can run and whose `wanted` models are all pulled.
    None if only the starter is left, or if the user named a preset."""
    if "preset" in given:
        return None
    for preset in BEST_FIRST:
        pulled = preset is not STARTER and wanted(preset, given)
        if pulled and not absent(preset, given, store) and machine.carries(preset):
            return preset.name
    return None


def settings_of(given: Given) -> tuple[Config, dict[str, str]]:
    """Return the settings that result from `given`, with their origins. A preset that `best_pulled`
    chose sets nothing in sections where the user named a model."""
    chosen = "preset" in given and given["preset"][1] == BEST_PULLED
    return merged(given, apart=named_sections(given) if chosen else ())
