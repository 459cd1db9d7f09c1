"""Findings of checks: how they are worded and judged, and which private texts are hidden in them.

This module examines and measures nothing. Checks that failed, crashed or gave no answer have
findings, too.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
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


def works(findings: Iterable[Finding]) -> bool:
    """Return whether nothing that the assistant needs is broken."""
    return all(finding.mark != "broken" for finding in findings)


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


def of_hang(check: str, seconds: float) -> Finding:
    """Return the finding for a check that has reported nothing for `seconds`."""
    return Finding(
        check,
        "broken",
        f"no answer in {seconds:.0f} s",
        "see what else this machine is doing, and try again",
    )


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


@dataclass(frozen=True, slots=True)
class Veil:
    """A filter that replaces private texts."""

    _instead: Mapping[str, str]
    """The replacement of each private text. The keys are in lower case."""
    _private: re.Pattern[str]

    @classmethod
    def of(cls, environ: Mapping[str, str], known: Mapping[str, str]) -> Veil:
        """Make a veil that hides the private values in the environment `environ`. `known` maps
        other private texts to their replacements."""
        found = {
            private: f"${name}"
            for name, value in environ.items()
            for private in _private_in(name, value)
        }
        found |= known
        instead = {key.lower(): word for key, word in found.items() if key.lower() not in _COMMON}
        # The longest texts come first: a folder in the home folder is found before the home folder.
        longest = sorted(instead, key=len, reverse=True)
        any_of = "|".join(map(re.escape, longest)) or r"(?!)"
        # An underscore ends a name, as in `anna_models`.
        whole = rf"(?<![^\W_])(?:{any_of})(?![^\W_])"
        return cls(instead, re.compile(whole, re.IGNORECASE))

    def over(self, text: str) -> str:
        """Return `text` with its private parts replaced."""
        shown = self._private.sub(lambda match: self._instead[match[0].lower()], text)
        return _KEY.sub("…", _PASSWORD.sub("…", shown))

    def over_all(self, finding: Finding) -> Finding:
        """Return `finding` with the private parts of its texts replaced, and with each text on one
        line."""
        text, cure = (" ".join(self.over(part).split()) for part in (finding.text, finding.cure))
        return replace(finding, text=text, cure=cure)


def _private_in(name: str, value: str) -> Iterator[str]:
    """Yield the private parts in the value of an environment variable."""
    if len(value) < _SHORTEST:
        return
    if _SECRET.search(name) or "/" in value or "\\" in value:
        yield value.rstrip("/\\")
    if "://" in value:
        try:
            parts = urlsplit(value)
        except ValueError:  # not a valid address
            return
        yield from (parts.netloc, parts.hostname or "")
