"""Findings of checks, including checks that failed, crashed or gave no answer.

This module examines nothing. It only words the results of checks.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from voiceloop.errors import ModelCorrupt, VoiceloopError

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
