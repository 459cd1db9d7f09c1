"""Judges measured figures: whether a stage keeps up with speech, and which preset suits the
machine.

This module measures nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from voiceloop.catalog.cards import preset_models, size
from voiceloop.doctor.findings import Finding
from voiceloop.presets import BEST_FIRST, Preset

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


@dataclass(frozen=True, slots=True)
class ExaminedMachine:
    """The resources of a machine that decide which presets it can run."""

    cores: int
    memory: int | None
    """Bytes of free memory; None if the system does not report it."""
    gpu: int
    """Bytes of memory of the largest GPU; 0 without a working GPU."""

    def meets(self, need: Preset) -> bool:
        """Return whether the machine has the cores, the memory and the GPU that the preset `need`
        needs. Unknown memory counts as enough."""
        memory = need.memory if self.memory is None else self.memory
        return self.cores >= need.cores and memory >= need.memory and self.gpu >= need.gpu

    def __str__(self) -> str:
        cores = f"{self.cores} core{'s' * (self.cores != 1)}"
        memory = "" if self.memory is None else f", {size(self.memory)} of memory free"
        return f"{cores}{memory}, {f'a GPU of {size(self.gpu)}' if self.gpu else 'no GPU'}"


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


def machine_of(findings: Iterable[Finding]) -> ExaminedMachine:
    """Return the resources of the machine, from the figures in `findings`."""
    figures = {finding.check: finding.figures for finding in findings if finding.figures}
    memory = figures.get("memory", {}).get("bytes")
    return ExaminedMachine(
        cores=int(figures.get("processor", {}).get("cores", 1)),
        memory=None if memory is None else int(memory),
        gpu=int(figures.get("graphics", {}).get("bytes", 0)),
    )


def suggest(machine: ExaminedMachine, configured: str, *, slow: bool) -> Preset:
    """Return the best preset whose needs the machine meets. If the configured preset was too `slow`
    when measured, only smaller ones are considered. If none is left, return the smallest preset."""
    names = [need.name for need in BEST_FIRST]
    first = names.index(configured) + 1 if slow else 0
    return next((need for need in BEST_FIRST[first:] if machine.meets(need)), BEST_FIRST[-1])


def advice(findings: Iterable[Finding], configured: str) -> list[Finding]:
    """Return two findings: a summary of the measured speeds, and the preset that suits the
    machine."""
    found = list(findings)
    machine = machine_of(found)
    stages = [finding for finding in found if finding.check in SLOWEST and finding.figures]
    slow = [stage.check for stage in stages if not keeps_up(stage.check, stage.figures)]
    need = suggest(machine, configured, slow=bool(slow))
    reason = f"{', '.join(slow)} slower than speech with {configured}" if slow else str(machine)
    text = f"{need.name} suits this machine ({reason})"
    if need.name != configured:
        pull = f"voiceloop models pull {need.name}, then " * bool(preset_models(need.name))
        text += f": {pull}--preset {need.name}"
    return [
        Finding("machine", "ok", "; ".join([_processor(found), *map(_speed, stages)])),
        Finding("preset", "ok", text),
    ]


def _processor(findings: Iterable[Finding]) -> str:
    return next((one.text for one in findings if one.check == "processor"), "processor unknown")


def _speed(stage: Finding) -> str:
    """Return the speed of a stage in words."""
    name, _ = SLOWEST[stage.check]
    value = stage.figures[name]
    if name == "tokens_per_s":
        return f"{stage.check} {value:.0f} tokens/s"
    return f"{stage.check} {value:.2g} s for a second of sound"
