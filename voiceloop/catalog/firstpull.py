"""The first start, when no model has been pulled: the user at the terminal chooses what to pull."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

from voiceloop.catalog.cards import size
from voiceloop.catalog.command import ModelsPull, models_pull
from voiceloop.catalog.pulled import absent
from voiceloop.catalog.store import ModelStore
from voiceloop.presets import STARTER, Machine, Preset

BITS_PER_S = 50e6
"""Assumed network speed in bits per second, for rough download times."""


def choose(
    machine: Machine,
    store: ModelStore,
    ask: Callable[[str], str],
    pull: Callable[[str], object] = lambda preset: models_pull(
        ModelsPull(names=(preset,)), agreed=True
    ),
) -> str | None:
    """Let the user choose a preset, pull it, and return its name. None if they choose the starter,
    or if no other preset runs well on this machine.

    `ask` shows a text and returns the user's line. `pull` pulls the models of a preset. Raises what
    pulling raises.
    """
    presets = [one for one in machine.recommended() if one is not STARTER]
    if not presets:
        return None
    question = "\n".join(_question(presets, store))
    while True:
        answer = ask(question).strip().lower()
        if answer == "s":
            return None
        if not answer:
            answer = "1"
        if answer.isdecimal() and 1 <= int(answer) <= len(presets):
            chosen = presets[int(answer) - 1].name
            pull(chosen)
            return chosen
        question = f"a number from 1 to {len(presets)}, s, or Enter: "


def ask_terminal(question: str) -> str:
    """Show `question` and return the line that the user types. Raises KeyboardInterrupt for Ctrl-C,
    and if the input ends."""
    sys.stderr.write(question)
    sys.stderr.flush()
    try:
        if answer := sys.stdin.readline():
            return answer
    except KeyboardInterrupt:
        pass
    sys.stderr.write("\n")
    raise KeyboardInterrupt


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
