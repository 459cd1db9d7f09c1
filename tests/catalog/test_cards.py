"""Cards: those that ship are sound."""

from __future__ import annotations

import re

import pytest

from voiceloop.catalog.cards import preset_models, variants
from voiceloop.catalog.store import cards
from voiceloop.settings.presets import PRESETS

pytestmark = pytest.mark.pure

NAME = re.compile(r"\w[\w.@-]*", re.ASCII)
PATH = re.compile(rf"({NAME.pattern}/)*{NAME.pattern}", re.ASCII)
PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".ckpt", ".joblib", ".npy", ".npz")
"""Formats whose readers may run code. `model.bin`, the weights of CTranslate2, is no pickle."""


def test_every_preset_names_models_that_can_be_pulled() -> None:
    for preset in PRESETS:
        for key, name in preset_models(preset).items():
            spoken = PRESETS[preset].get("tts.engine")
            kinds = {"asr": "asr", "llm": "llm", "turns": "turn", "tts": spoken}
            found = [card.kind for card in variants(cards(), name)]
            assert found[:1] == [kinds[key.partition(".")[0]]], name


def test_the_smallest_preset_can_be_had_without_the_hub() -> None:
    for name in preset_models("mini").values():
        assert "packages" in {card.origin for card in variants(cards(), name)}


def test_what_ships_is_pinned() -> None:
    assert all(card.revision for card in cards() if card.origin == "hub")
    assert all(file.sha256 for card in cards() for file in card.files if file.name.endswith(".bin"))


def test_each_card_that_ships_is_sound() -> None:
    """Its files lie in its folder and run no code, and their checksums look like some."""
    sha256, commit = re.compile(r"[0-9a-f]{64}"), re.compile(r"[0-9a-f]{40}")
    assert len({(card.name, card.origin) for card in cards()}) == len(cards())
    for card in cards():
        assert NAME.fullmatch(card.name) and card.name != "starter"
        names = [file.name for file in card.files]
        assert names and len(set(names)) == len(names), card.name
        for file in card.files:
            assert PATH.fullmatch(file.name) and not file.name.endswith(PICKLES), file
            assert file.sha256 is None or sha256.fullmatch(file.sha256), file
        if card.origin == "hub":
            assert card.repo.count("/") == 1 and commit.fullmatch(card.revision or ""), card.name
            continue
        taken = {member.to for wheel in card.wheels for member in wheel.take}
        assert taken == set(names), card.name
        assert all(file.bytes is not None and file.sha256 for file in card.files), card.name
        assert all(sha256.fullmatch(wheel.sha256) for wheel in card.wheels), card.name
