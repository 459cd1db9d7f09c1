"""Which preset it is where none is named: the best of those whose models have all been pulled.

What a user has named of the models themselves stays as it is. This module fetches nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from voiceloop.catalog.cards import Card, preset_models, variants
from voiceloop.catalog.store import ModelStore, cards
from voiceloop.config import Config, Given, merged
from voiceloop.presets import BEST_FIRST, STARTER, Machine, Preset

BEST_PULLED = "best pulled, for talk and serve"
"""The origin of a preset that was chosen here."""
NAMING = frozenset(
    {
        *("asr.engine", "asr.model", "llm.engine", "llm.base_url", "llm.target"),
        *("tts.engine", "tts.model", "tts.voice", "turns.sound"),
    }
)
"""Settings that name a model, or what it runs in."""


def named_sections(given: Mapping[str, object]) -> set[str]:
    """The sections of the settings whose models are named."""
    return {key.partition(".")[0] for key in given if key in NAMING}


def wanted(preset: Preset, given: Given) -> list[str]:
    """The models of a preset in the sections of which none are named, each once."""
    named = named_sections(given)
    models = preset_models(preset.name)
    return list(dict.fromkeys(models[key] for key in models if key.partition(".")[0] not in named))


def absent(preset: Preset, given: Given, store: ModelStore) -> list[Card]:
    """Those of them that have not been pulled, each as its first source has it."""
    return [
        variants(cards(), name)[0] for name in wanted(preset, given) if store.find(name) is None
    ]


def best_pulled(given: Given, machine: Machine, store: ModelStore) -> str | None:
    """The best preset that the machine carries and that has been pulled as far as models are not
    named; None where there is none but the starter, or one is named."""
    if "preset" in given:
        return None
    for preset in BEST_FIRST:
        pulled = preset is not STARTER and wanted(preset, given)
        if pulled and not absent(preset, given, store) and machine.carries(preset):
            return preset.name
    return None


def settings_of(given: Given) -> tuple[Config, dict[str, str]]:
    """The settings that come of what is given, with their origins; a preset that was chosen here
    sets nothing in sections whose models are named."""
    chosen = "preset" in given and given["preset"][1] == BEST_PULLED
    return merged(given, apart=named_sections(given) if chosen else ())
