"""The rows of the table of results on a device.

A row is a check, which passes or fails, or a figure, which may have a goal. A goal that is not met
is no failure. An error in a section is a failed row of its own.
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
"""Widths of the columns of names and of results, in characters."""


@dataclass(frozen=True, slots=True)
class Row:
    """A check or a figure, and its result."""

    name: str
    found: str
    verdict: Verdict = ""
    wanted: str = ""
    """The goal of a figure, if it has one."""

    @property
    def failed(self) -> bool:
        """True for a failed check."""
        return self.verdict == "FAILED"

    def without_goal(self) -> Row:
        """Return the same row without a goal."""
        return replace(self, verdict="", wanted="") if self.wanted else self

    def __str__(self) -> str:
        wanted = f"  (asked: {self.wanted})" if self.wanted else ""
        return f"{self.verdict:8}  {self.name:{NAME}}  {self.found}{wanted}".rstrip()


Section = Callable[[], Iterable[Row]]


def checked(name: str, passed: bool, found: str) -> Row:
    """Return the row of a check."""
    return Row(name, found, "ok" if passed else "FAILED")


def not_here(name: str, why: str = "only on CUDA") -> Row:
    """Return the row of a check or figure that is not possible on this device."""
    return Row(name, why, "not here")


def at_least(name: str, value: float, least: float, form: str) -> Row:
    """Return the row of a figure whose goal is at least `least`."""
    met = value >= least
    return Row(name, form.format(value), "met" if met else "not met", f"at least {least:g}")


def at_most(name: str, value: float, most: float, form: str) -> Row:
    """Return the row of a figure whose goal is at most `most`."""
    met = value <= most
    return Row(name, form.format(value), "met" if met else "not met", f"at most {most:g}")


def rows(sections: Mapping[str, Section]) -> Iterator[Row]:
    """Yield the rows of all sections. A section that raises an error ends with a failed row, and
    the next section begins. Lack of memory on the device is no failure.
    """
    for name, section in sections.items():
        try:
            yield from section()
        except (OutOfMemory, torch.OutOfMemoryError) as error:
            yield not_here(name, f"does not fit: {_first_line(error)}")
        except Exception as error:  # any other error is a failed row
            logger.error("%s broke off", name, exc_info=error)
            yield Row(name, f"{type(error).__name__}: {_first_line(error)}", "FAILED")
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _first_line(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error).strip().partition("\n")[0]
