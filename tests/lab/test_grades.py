"""The grades of everyday answers: which answers keep them, and how they are counted."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import ValidationError

from lab.everyday.grades import kept, merged, sheet, summary

pytestmark = pytest.mark.pure


def record(
    say: str = "hi", reply: str = "Hello.", before: tuple[str, ...] = (), **more: Any
) -> dict[str, Any]:
    return {"kind": "facts", "before": before, "say": say, "reply": reply, "wrong": [], **more}


GOOD, BAD = {"grade": "good"}, {"grade": "bad", "harmful": True}


def test_only_an_unchanged_answer_keeps_its_grades() -> None:
    earlier = [record(grades={"1": GOOD})]
    now = [record(), record(reply="Hello!"), record(before=("a", "b")), record(say="hey")]
    assert [one["grades"] for one in kept(now, earlier)] == [{"1": GOOD}, {}, {}, {}]


def test_a_sheet_has_what_its_reader_has_not_graded_and_no_other_grade() -> None:
    records = [record(grades={"1": GOOD}), record(say="bye", grades={"2": BAD}), record("um")]
    asked = sheet(records, "1")
    assert [one["say"] for one in asked["answers"]] == ["bye", "um"]
    assert all(one["grade"] == "" and not one["harmful"] for one in asked["answers"])


def test_a_filled_sheet_is_put_beside_the_answers_of_the_other_reader() -> None:
    records = [record(grades={"2": BAD}), record("um")]
    filled = sheet(records, "1")
    first, second = filled["answers"]
    filled["answers"] = [{**first, "grade": "good"}, second]
    found = merged(records, filled)
    assert [one.get("grades", {}) for one in found] == [{"2": BAD, "1": GOOD}, {}]
    assert merged([record(reply="changed")], filled) == [record(reply="changed")]
    with pytest.raises(ValidationError):
        merged(records, {**filled, "answers": [{**first, "grade": "fine"}]})


def test_first_and_added_questions_are_counted_apart() -> None:
    records = [
        record(grades={"1": GOOD, "2": GOOD}),
        record("um", wrong=["x"], grades={"1": BAD, "2": GOOD}),
        {**record("lights"), "kind": "wishes"},
    ]
    lines = summary(records)
    assert "first  rules       1 of 2" in lines
    assert "first  reader 1  1 good, 0 acceptable, 1 bad (1 harmful) of 2" in lines
    assert "first  readers agree on 1 of 2" in lines
    assert "added  rules       1 of 1" in lines
    assert "all    rules       2 of 3" in lines
