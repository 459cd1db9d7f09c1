"""Chooses the default preset of `talk` and `serve`: the best preset whose models are all pulled.

It does not replace models that the user has named. At the first start, when no model has been
pulled, the user at the terminal chooses what to pull.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

from voiceloop.catalog.cards import Card, preset_models, variants
from voiceloop.catalog.store import ModelStore, cards
from voiceloop.languages.voices import piper_name
from voiceloop.placement import gpu_memory, total_memory
from voiceloop.process import available_cores
from voiceloop.settings.config import Config, Given, merged
from voiceloop.settings.presets import BEST_FIRST, BEST_PULLED, STARTER, Machine, Preset
from voiceloop.terminal import size

NAMING = frozenset(
    {
        *("asr.engine", "asr.model", "llm.engine", "llm.base_url", "llm.target"),
        *("tts.engine", "tts.model", "tts.voice", "turns.sound"),
    }
)
"""Settings that name a model, or the engine that runs it."""

BITS_PER_S = 50e6
"""Assumed network speed in bits per second, for rough download times."""


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


# The first start ----------------------------------------------------------------------------------


def choose(
    machine: Machine,
    store: ModelStore,
    ask: Callable[[str], str],
    pull: Callable[[str], object],
) -> str | None:
    """Let the user choose a preset, pull it, and return its name. None if they choose the starter,
    or if no other preset runs well on this machine.

    `ask` shows a text and returns the user's line, or an empty string if the input has ended. Then
    this raises KeyboardInterrupt. `pull` pulls the models of a preset. Raises what pulling raises.
    """
    presets = [one for one in machine.recommended() if one is not STARTER]
    if not presets:
        return None
    question = "\n".join(_question(presets, store))
    while True:
        line = ask(question)
        if not line:
            raise KeyboardInterrupt
        answer = line.strip().lower()
        if answer == "s":
            return None
        if not answer:
            answer = "1"
        if answer.isdecimal() and 1 <= int(answer) <= len(presets):
            chosen = presets[int(answer) - 1].name
            pull(chosen)
            return chosen
        question = f"a number from 1 to {len(presets)}, s, or Enter: "


def terminal() -> Callable[[str], str] | None:
    """Return the function that asks the user on the terminal; None without a terminal."""
    return _ask if sys.stdin.isatty() and sys.stderr.isatty() else None


def _ask(question: str) -> str:
    """Show `question` and return the line that the user types, or an empty string if the input ends
    (Ctrl-D). Raises KeyboardInterrupt for Ctrl-C."""
    sys.stderr.write(question)
    sys.stderr.flush()
    answer = ""
    try:
        answer = sys.stdin.readline()
    finally:
        if not answer:
            sys.stderr.write("\n")
    return answer


def _question(presets: Sequence[Preset], store: ModelStore) -> Iterator[str]:
    """Yield the lines that show what can be chosen. The first of the presets is recommended."""
    yield "nothing has been pulled yet to talk to:"
    for number, preset in enumerate(presets, 1):
        download = sum(card.download for card in absent(preset, {}, store))
        minutes = max(1, round(download * 8 / BITS_PER_S / 60))
        price = f"{size(download)}, {minutes} min at {BITS_PER_S / 1e6:.0f} Mbit/s"
        yield f"  {number}  {preset.name:<8} {price:<28} {preset.good_for}; {preset.needs}"
    yield f"  s  {STARTER.name:<8} {'is here':<28} {STARTER.good_for}"
    first = presets[0].name
    others = "a number another, " if len(presets) > 1 else ""
    yield f"Enter pulls {first}, {others}s goes on with the starter, Ctrl-C leaves: "
