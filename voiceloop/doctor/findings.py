"""Findings of checks: how they are worded and judged, and which private texts are hidden in them.

This module examines and measures nothing. Checks that failed, crashed or gave no answer have
findings, too.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from voiceloop.errors import ModelCorrupt, VoiceloopError
from voiceloop.settings.presets import Machine, Preset
from voiceloop.terminal import size

Mark = Literal["ok", "warning", "broken"]
"""`ok`: the examined part works. `warning`: it works less well, or fails but is not needed.
`broken`: it fails, so the assistant cannot run."""

MEMORY = "this machine probably has too little memory: close programs, or choose a smaller preset"
DEATHS = {
    "SIGILL": "this processor lacks instructions that a library was built with: install another "
    "build of torch or CTranslate2",
    "SIGKILL": MEMORY,
}
"""Cures for a check whose process a signal ended, by the name of the signal."""
VERIFY = "voiceloop models verify tells whether the files are as they were pulled"
REPORT = "please report this, with what `voiceloop doctor --json` prints"
"""The cure for an error whose cause is not known."""
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
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)
"""Matches the name of an environment variable whose value is a secret."""
_SHORTEST = 4
"""Minimum length of a value that is hidden, in characters. Shorter values reveal nothing, and they
occur in many words."""
_PASSWORD = re.compile(r"(?<=://)[^/@\s]+(?=@)")
_KEY = re.compile(r"(?<!\w)(?=\w*\d)(?=\w*[A-Za-z])\w{24,}(?!\w)")
_COMMON = {"", "/", "localhost", "127.0.0.1", "::1", "root", "user", "voiceloop"}
"""Values that are never hidden. They reveal nothing, and messages need them."""


class Finding(Struct, frozen=True):
    """One result of a check."""

    check: str
    mark: Mark
    text: str
    """The result in words, e.g. `2 cores, AVX2`."""
    cure: str = ""
    """What the user can do about the problem; empty if nothing needs to be done."""
    figures: Mapping[str, float] = {}
    """Measured figures by name. The names contain the units."""


def of_error(check: str, error: Exception) -> Finding:
    """Return the finding for a check that raised `error`. Of an unexpected error it has only the
    first line."""
    if isinstance(error, VoiceloopError):
        corrupt = isinstance(error, ModelCorrupt)
        hint = f"{VERIFY}; or {error.hint}" if corrupt else error.hint
        return Finding(check, "broken", error.message, hint)
    (line, *_) = [*str(error).strip().splitlines(), ""]
    why = f"{type(error).__name__}: {line[:200]}".removesuffix(": ")
    cure = MEMORY if isinstance(error, MemoryError) else REPORT
    return Finding(check, "broken", f"the check has failed: {why}", cure)


def of_death(check: str, status: int) -> Finding:
    """Return the finding for a check whose process ended with the exit status `status`.

    The status is the negative number of the signal if a signal ended the process.
    """
    try:
        how = signal.Signals(-status).name
    except ValueError:  # no signal; Windows has exit statuses only
        how = f"status {status}"
    return Finding(check, "broken", f"a library ended the process: {how}", DEATHS.get(how, REPORT))


def keeps_up(finding: Finding) -> bool:
    """Return whether a stage is at least as fast as speech. Return True for other checks, and for a
    stage that was not measured."""
    name, limit = SLOWEST.get(finding.check, ("", 0.0))
    if name not in finding.figures:
        return True
    value = finding.figures[name]
    return value >= limit if name == "tokens_per_s" else value <= limit


def judged(check: str, text: str, figures: Mapping[str, float]) -> Finding:
    """Return the finding for a stage that works. It is a warning if the stage is slower than
    speech."""
    found = Finding(check, "ok", text, figures=figures)
    if keeps_up(found):
        return found
    cure = "choose a smaller preset, or close other programs"
    return Finding(check, "warning", f"{text}: slower than speech", cure, figures)


def advice(
    findings: Sequence[Finding], configured: str, machine: Machine, way: Callable[[Preset], str]
) -> list[Finding]:
    """Return two findings: a summary of the measured speeds, and the preset that suits the
    `machine`. If the configured preset was too slow when measured, a smaller one suits. `way` says
    how the user gets a preset."""
    known = [one.text for one in findings if one.check == "processor"]
    timed = [one for one in findings if SLOWEST.get(one.check, ("",))[0] in one.figures]
    slow = [one.check for one in timed if not keeps_up(one)]
    suits = machine.suggested(below=configured if slow else None)
    reason = _described(machine)
    if slow:
        reason = f"{', '.join(slow)} slower than speech with {configured}"
    text = f"{suits.name} suits this machine ({reason})"
    if suits.name != configured:
        text += f": {way(suits)}"
    told = [known[0] if known else "processor unknown", *map(_speed, timed)]
    return [Finding("machine", "ok", "; ".join(told)), Finding("preset", "ok", text)]


def _described(machine: Machine) -> str:
    """Return the cores, the memory and the GPU of a machine in words."""
    cores = f"{machine.cores} core{'s' * (machine.cores != 1)}"
    memory = "" if machine.memory is None else f", {size(machine.memory)} of memory"
    gpu = machine.gpu()
    return f"{cores}{memory}, {f'a GPU of {size(gpu)}' if gpu else 'no GPU'}"


def _speed(stage: Finding) -> str:
    """Return the speed of a stage in words."""
    name, _ = SLOWEST[stage.check]
    value = stage.figures[name]
    if name == "tokens_per_s":
        return f"{stage.check} {value:.0f} tokens/s"
    return f"{stage.check} {value:.2g} s for a second of sound"


class Veil:
    """A filter that replaces private texts."""

    def __init__(self, environ: Mapping[str, str], known: Mapping[str, str]) -> None:
        """Hide the private values in the environment `environ`. `known` maps other private texts to
        their replacements."""
        found = {text: f"${name}" for name, own in environ.items() for text in _secrets(name, own)}
        found |= known
        self._instead = {
            text.lower(): shown for text, shown in found.items() if text.lower() not in _COMMON
        }
        # The longest texts come first: a folder in the home folder is found before the home folder.
        longest = sorted(self._instead, key=len, reverse=True)
        any_of = "|".join(map(re.escape, longest)) or r"(?!)"
        # An underscore ends a name, as in `anna_models`.
        self._private = re.compile(rf"(?<![^\W_])(?:{any_of})(?![^\W_])", re.IGNORECASE)

    def over(self, text: str) -> str:
        """Return `text` on one line, with its private parts replaced."""
        shown = self._private.sub(lambda match: self._instead[match[0].lower()], text)
        return " ".join(_KEY.sub("…", _PASSWORD.sub("…", shown)).split())

    def over_all(self, finding: Finding) -> Finding:
        """Return `finding` with both of its texts as `over` returns them."""
        return replace(finding, text=self.over(finding.text), cure=self.over(finding.cure))


def _secrets(name: str, value: str) -> Iterator[str]:
    """Yield the private parts in the value of an environment variable."""
    if len(value) < _SHORTEST:
        return
    if _SECRET.search(name) or "/" in value or "\\" in value:
        yield value.rstrip("/\\")
    if "://" in value:
        with suppress(ValueError):  # not a valid address
            parts = urlsplit(value)
            yield from (parts.netloc, parts.hostname or "")
