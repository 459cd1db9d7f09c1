"""What a check finds, how a check that was not survived is told of, and what all of it comes to.

This module looks at nothing: it says what others have seen.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from voiceloop.errors import ModelCorrupt, VoiceloopError

Mark = Literal["ok", "warning", "broken"]
"""`warning`: something works less well, or is not needed; `broken`: the assistant cannot run."""

MEMORY = "this machine probably has too little memory: close programs, or choose a smaller preset"
DEATHS = {
    "SIGILL": "this processor lacks instructions that a library was built with: install another "
    "build of torch or CTranslate2",
    "SIGKILL": MEMORY,
}
"""What to do about a check that a signal has ended."""
VERIFY = "voiceloop models verify tells whether the files are as they were pulled"
REPORT = "please report this, with what `voiceloop doctor --json` prints"
"""What to do where nobody knows better."""


class Finding(Struct, frozen=True):
    """What one check has found."""

    check: str
    mark: Mark
    text: str
    """What there is, or what is wrong."""
    cure: str = ""
    """What to do about it; empty where nothing is to be done."""
    figures: Mapping[str, float] = {}
    """What was measured, by name with its unit."""


def works(findings: Iterable[Finding]) -> bool:
    """Whether all that the assistant needs is in order."""
    return all(finding.mark != "broken" for finding in findings)


def of_error(check: str, error: Exception) -> Finding:
    """What is told of a check that has raised `error`; of one that nobody foresaw, a line."""
    if isinstance(error, VoiceloopError):
        corrupt = isinstance(error, ModelCorrupt)
        hint = f"{VERIFY}; or {error.hint}" if corrupt else error.hint
        return Finding(check, "broken", error.message, hint)
    (line, *_) = [*str(error).strip().splitlines(), ""]
    why = f"{type(error).__name__}: {line[:200]}".removesuffix(": ")
    cure = MEMORY if isinstance(error, MemoryError) else REPORT
    return Finding(check, "broken", f"the check has failed: {why}", cure)


def of_death(check: str, status: int) -> Finding:
    """What is told of a check during which its process ended, with this exit status.

    It is negative where a signal has ended it.
    """
    try:
        how = signal.Signals(-status).name
    except ValueError:  # Windows has statuses alone
        how = f"status {status}"
    return Finding(check, "broken", f"a library ended the process: {how}", DEATHS.get(how, REPORT))


def of_hang(check: str, seconds: float) -> Finding:
    """What is told of a check that has come to no end."""
    return Finding(
        check,
        "broken",
        f"no answer in {seconds:.0f} s",
        "see what else this machine is doing, and try again",
    )
