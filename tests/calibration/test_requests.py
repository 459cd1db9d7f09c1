"""The bundled requests: what they are made of, and that no model has learnt them."""

from __future__ import annotations

import random
import re
from typing import get_args

import pytest

from lab.conversations.sentences import LONG_ANSWERS, QUESTIONS
from models.train.domain import utterance
from models.train.domain.talk import TALKS
from voiceloop.calibration.requests import Kind, bundled_requests, request
from voiceloop.languages import bare, installed
from voiceloop.languages.en import ENGLISH

pytestmark = pytest.mark.pure

BUNDLED = bundled_requests()


def plain(text: str) -> str:
    return " ".join(re.findall(r"[\w']+", text.lower()))


def test_a_request_is_cut_where_it_is_marked() -> None:
    made = request("Turn the / kitchen / lights off, | please.", ENGLISH, "commands")
    assert made.text == "Turn the kitchen lights off, please."
    assert [(cut.words, cut.kind) for cut in made.cuts] == [
        ("Turn the", "function word"),
        ("Turn the kitchen", "content word"),
        ("Turn the kitchen lights off", "whole"),
        ("Turn the kitchen lights off, please", "end"),
    ]
    assert [cut.unfinished for cut in made.cuts][:2] == [True, False]


@pytest.mark.parametrize("language", sorted(BUNDLED))
def test_what_is_bundled_is_of_every_kind(language: str) -> None:
    assert language in installed()
    assert len(BUNDLED[language].history) == 2
    asked = BUNDLED[language].asked
    assert {cut.kind for one in asked for cut in one.cuts} == {*get_args(Kind)}
    assert len({plain(one.text) for one in asked}) == len(asked)
    for one in asked:
        assert all(cut.words == bare(cut.words) != "" for cut in one.cuts)


def test_the_starter_models_were_trained_on_none_of_them() -> None:
    rng = random.Random("overlap")
    learnt = {plain(utterance(rng, split)) for split in ("train", "heldout") for _ in range(10_000)}
    learnt |= {
        plain(carrier)
        for talk in TALKS
        for whole in talk.carriers
        for carrier in _written_out(whole)
    }
    learnt |= {plain(sentence.text) for sentence in (*QUESTIONS, *LONG_ANSWERS)}
    assert plain("How are you doing?") in learnt
    assert not [one.text for one in BUNDLED["en"].asked if plain(one.text) in learnt]


def _written_out(carrier: str) -> list[str]:
    """All that a carrier without a slot may be."""
    choice = re.search(r"\(([^()]*)\)", carrier)
    if choice is None:
        return [carrier]
    before, after = carrier[: choice.start()], carrier[choice.end() :]
    return [one for part in choice[1].split("|") for one in _written_out(before + part + after)]
