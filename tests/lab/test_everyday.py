"""The judge of everyday answers: what it lets pass, and what not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lab.everyday.judge import ADDED, JudgedText, TypedAnswer, questions, speakable, wrong
from lab.typed import save

pytestmark = pytest.mark.real

QUESTIONS = questions()


def test_sixty_things_of_ten_kinds_are_asked_and_thirty_of_three_more() -> None:
    judged = [talk.kind for talk in QUESTIONS.talk for ask in talk.turns if ask.judged]
    added = [kind for kind in judged if kind in ADDED]
    assert (len(judged) - len(added), len(added)) == (60, 30)
    assert len(set(judged)) == 10 + len(ADDED)


@pytest.mark.parametrize(
    ("rule", "right", "faulty"),
    [
        (JudgedText("", any=("five", "four")), "It is Four.", "It is three."),
        (JudgedText("", all=("a", "b")), "a b", "a"),
        (JudgedText("", none=("refusal",)), "Well.", "I can’t do that."),  # noqa: RUF001
        (JudgedText("", words=(2, 3)), "one two", "one two three four"),
        (JudgedText("", does="repeats"), "It is rome", "It is Paris."),
        (JudgedText("", does="stops"), "", "Okay."),
    ],
)
def test_each_part_of_a_rule_counts(rule: JudgedText, right: str, faulty: str) -> None:
    assert not wrong(rule, TypedAnswer(right), "It is Rome.", QUESTIONS)
    assert wrong(rule, TypedAnswer(faulty), "It is Rome.", QUESTIONS)


def test_what_is_done_is_told_apart_from_what_is_said() -> None:
    rule = JudgedText("", does="timer 600")
    assert not wrong(rule, TypedAnswer("", done=["timer 600"]), "", QUESTIONS)
    assert wrong(rule, TypedAnswer("Timer 600.", done=["timer 60"]), "", QUESTIONS)


@pytest.mark.parametrize(
    "answer",
    [
        TypedAnswer("Word. " * 40, tokens=101),
        TypedAnswer("Fine 👍"),
        TypedAnswer("And then she went to the", tokens=80, cut=True),
    ],
)
def test_no_reply_is_long_or_unspeakable_or_broken_off(answer: TypedAnswer) -> None:
    assert wrong(JudgedText("", none=("nothing",)), answer, "", QUESTIONS)


def test_marks_and_signs_can_be_spoken() -> None:
    assert all(map(speakable, "Ä 20 °C, “so”, 5 € – ¿qué? ½\n"))  # noqa: RUF001


def test_a_record_is_saved_in_place_of_the_last(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    for record in ({"answers": [1]}, {"answers": ["ä"]}):
        save(path, record)
        assert json.loads(path.read_text(encoding="utf-8")) == record
    assert list(tmp_path.iterdir()) == [path]
