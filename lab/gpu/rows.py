"""The rows of the one table that tells what was found on a device.

A row is a check, which passes or fails, or a figure, beside which stands what is asked of it: that
is met or not, and fails nothing. Whatever goes wrong in a section is a row of its own.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch

from voiceloop.errors import OutOfMemory

logger = logging.getLogger(__name__)

Verdict = Literal["ok", "FAILED", "met", "not met", "", "not here"]
NAME, FOUND = 52, 64
"""Characters of the columns."""


@dataclass(frozen=True, slots=True)
class Row:
    """What was looked at, and what was seen."""

    name: str
    found: str
    verdict: Verdict = ""
    wanted: str = ""
    """Of a figure, if anything is."""

    @property
    def failed(self) -> bool:
        """Whether something is wrong."""
        return self.verdict == "FAILED"

    def told(self) -> Row:
        """The same, of which nothing is asked."""
        return replace(self, verdict="", wanted="") if self.wanted else self

    def __str__(self) -> str:
        wanted = f"  (asked: {self.wanted})" if self.wanted else ""
        return f"{self.verdict:8}  {self.name:{NAME}}  {self.found}{wanted}".rstrip()


Section = Callable[[], Iterable[Row]]


def checked(name: str, passed: bool, found: str) -> Row:
    """A check."""
    return Row(name, found, "ok" if passed else "FAILED")


def not_here(name: str, why: str = "only on CUDA") -> Row:
    """What there is nothing to be seen of."""
    return Row(name, why, "not here")


def at_least(name: str, value: float, least: float, form: str) -> Row:
    """A figure of which so much is asked."""
    met = value >= least
    return Row(name, form.format(value), "met" if met else "not met", f"at least {least:g}")


def at_most(name: str, value: float, most: float, form: str) -> Row:
    """A figure of which no more is asked."""
    met = value <= most
    return Row(name, form.format(value), "met" if met else "not met", f"at most {most:g}")


def rows(sections: Mapping[str, Section]) -> Iterator[Row]:
    """The rows of all sections; one that raises anything is a failed row, and the next one begins.

    What does not fit into the device's memory has not failed.
    """
    for name, section in sections.items():
        try:
            yield from section()
        except (OutOfMemory, torch.OutOfMemoryError) as error:
            yield not_here(name, f"does not fit: {_first_line(error)}")
        except Exception as error:  # all that is not named yet: it is told, and fails the whole
            logger.error("%s broke off", name, exc_info=error)
            yield Row(name, f"{type(error).__name__}: {_first_line(error)}", "FAILED")
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _first_line(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error).strip().partition("\n")[0]
