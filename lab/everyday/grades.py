"""The grades that readers give to everyday answers, kept beside the answers.

`GRADING.md` tells a reader what each grade means. This module runs nothing and reads no file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct, convert, to_builtins

from lab.everyday.judge import ADDED

GRADES = ("good", "acceptable", "bad")
Records = Sequence[Mapping[str, Any]]
"""Answers as `lab.everyday.run` writes them. `grades` has the grade of each reader by name."""


class Grade(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A reader's grade of one answer."""

    grade: Literal["good", "acceptable", "bad"]
    harmful: bool = False
    """True if the answer could hurt or frighten somebody, or shames whoever shows it."""


class Graded(Struct, frozen=True, forbid_unknown_fields=True):
    """An answer in a reader's sheet."""

    before: tuple[str, ...]
    """What was said before in the conversation, by the user and the assistant in turn."""
    say: str
    reply: str
    grade: Literal["good", "acceptable", "bad", ""] = ""
    """Empty until the reader has graded the answer."""
    harmful: bool = False


class Sheet(Struct, frozen=True, forbid_unknown_fields=True):
    """What one reader has to grade. It shows neither the rules' faults nor another's grades."""

    reader: str
    answers: tuple[Graded, ...]


def _key(record: Mapping[str, Any]) -> tuple[str, ...]:
    return (*record["before"], record["say"], record["reply"])


def kept(records: Records, earlier: Records) -> list[dict[str, Any]]:
    """Return `records` with the grades that the same answers have in `earlier`. An answer is the
    same if it, its question, and all that was said before are."""
    known = {_key(record): record["grades"] for record in earlier if record.get("grades")}
    return [{**record, "grades": known.get(_key(record), {})} for record in records]


def sheet(records: Records, reader: str) -> dict[str, Any]:
    """Return the sheet of all answers that `reader` has not graded."""
    missing = [record for record in records if reader not in record.get("grades", {})]
    answers = [Graded(tuple(one["before"]), one["say"], one["reply"]) for one in missing]
    return to_builtins(Sheet(reader, tuple(answers)))


def merged(records: Records, filled: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return `records` with the grades of a filled sheet. An answer without a grade, or that has
    changed since, gets none. Raises msgspec.ValidationError for an unknown grade."""
    done = convert(filled, Sheet)
    found = {
        _key(to_builtins(one)): to_builtins(Grade(one.grade, one.harmful))
        for one in done.answers
        if one.grade
    }
    return [
        {**record, "grades": {**record.get("grades", {}), done.reader: found[_key(record)]}}
        if _key(record) in found
        else dict(record)
        for record in records
    ]


def summary(records: Records) -> list[str]:
    """Return lines that count, for the first sixty questions, the thirty added ones and all: the
    answers that the rules call right, each reader's grades, and the answers on whose grade the
    readers agree."""
    first = [record for record in records if record["kind"] not in ADDED]
    added = [record for record in records if record["kind"] in ADDED]
    parts = {"first": first, "added": added, "all": records}
    return [line for name, part in parts.items() if part for line in _counts(name, part)]


def _counts(name: str, records: Records) -> list[str]:
    right = sum(not record["wrong"] for record in records)
    lines = [f"{name:<6} rules     {right:>3} of {len(records)}"]
    all_grades = [record.get("grades", {}) for record in records]
    for reader in sorted({reader for grades in all_grades for reader in grades}):
        given = [grades[reader] for grades in all_grades if reader in grades]
        count = Counter(one["grade"] for one in given)
        of_each = ", ".join(f"{count[grade]} {grade}" for grade in GRADES)
        harmful = sum(one.get("harmful", False) for one in given)
        lines.append(f"{name:<6} reader {reader:<2} {of_each} ({harmful} harmful) of {len(given)}")
    both = [grades for grades in all_grades if len(grades) > 1]
    if both:
        agreed = sum(len({one["grade"] for one in grades.values()}) == 1 for grades in both)
        lines.append(f"{name:<6} readers agree on {agreed} of {len(both)}")
    return lines
