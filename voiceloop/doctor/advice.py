"""Judges measured figures: whether a stage keeps up with speech, and which preset suits the
machine.

This module measures nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from voiceloop.catalog.cards import size
from voiceloop.doctor.findings import Finding
from voiceloop.presets import Machine, Preset

SLOWEST = {
    "recogniser": ("s_per_s", 1.0),
    "synthesizer": ("s_per_s", 1.0),
    "language model": ("tokens_per_s", 5.0),
}
"""The figure by which each stage is judged, and the limit of this figure.

`s_per_s` is the time in seconds to process one second of sound; its limit is a maximum.
`tokens_per_s` is the speed of a reply; its limit is a minimum. Spoken English has about four tokens
per second.
"""


def keeps_up(check: str, figures: Mapping[str, float]) -> bool:
    """Return whether the stage `check` is at least as fast as speech. Return True for a stage
    without a limit, or without its figure in `figures`."""
    if check not in SLOWEST:
        return True
    name, limit = SLOWEST[check]
    if name not in figures:
        return True
    return figures[name] >= limit if name == "tokens_per_s" else figures[name] <= limit


def judged(check: str, text: str, figures: Mapping[str, float]) -> Finding:
    """Return the finding for a stage that works. It is a warning if the stage is slower than
    speech."""
    if keeps_up(check, figures):
        return Finding(check, "ok", text, figures=figures)
    cure = "choose a smaller preset, or close other programs"
    return Finding(check, "warning", f"{text}: slower than speech", cure, figures)


def advice(
    findings: Iterable[Finding], configured: str, machine: Machine, way: Callable[[Preset], str]
) -> list[Finding]:
    """Return two findings: a summary of the measured speeds, and the preset that suits the
    `machine`. If the configured preset was too slow when measured, a smaller one suits. `way` says
    how the user gets a preset."""
    found = list(findings)
    stages = [one for one in found if one.check in SLOWEST and SLOWEST[one.check][0] in one.figures]
    slow = [stage.check for stage in stages if not keeps_up(stage.check, stage.figures)]
    suits = machine.suggested(below=configured if slow else None)
    reason = _described(machine)
    if slow:
        reason = f"{', '.join(slow)} slower than speech with {configured}"
    text = f"{suits.name} suits this machine ({reason})"
    if suits.name != configured:
        text += f": {way(suits)}"
    return [
        Finding("machine", "ok", "; ".join([_processor(found), *map(_speed, stages)])),
        Finding("preset", "ok", text),
    ]


def _described(machine: Machine) -> str:
    """Return the cores, the memory and the GPU of a machine in words."""
    cores = f"{machine.cores} core{'s' * (machine.cores != 1)}"
    memory = "" if machine.memory is None else f", {size(machine.memory)} of memory"
    gpu = machine.gpu()
    return f"{cores}{memory}, {f'a GPU of {size(gpu)}' if gpu else 'no GPU'}"


def _processor(findings: Iterable[Finding]) -> str:
    return next((one.text for one in findings if one.check == "processor"), "processor unknown")


def _speed(stage: Finding) -> str:
    """Return the speed of a stage in words."""
    name, _ = SLOWEST[stage.check]
    value = stage.figures[name]
    if name == "tokens_per_s":
        return f"{stage.check} {value:.0f} tokens/s"
    return f"{stage.check} {value:.2g} s for a second of sound"
