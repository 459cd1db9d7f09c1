"""Cards: those that ship are sound, and what no card may be is refused."""

from __future__ import annotations

import pytest

from tests.catalog.conftest import card, hub_card, package_card
from voiceloop.catalog.cards import parse, preset_models, size, variants
from voiceloop.catalog.store import cards
from voiceloop.config import PRESETS

pytestmark = pytest.mark.pure

FILES = {"model.bin": b"weights"}


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


def test_the_hub_comes_before_packages() -> None:
    assert [card.origin for card in variants(cards(), "tiny.en")] == ["hub", "packages"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (hub_card("a", "org/a", FILES, "main"), "no commit"),
        (hub_card("a", "nowhere", FILES, "c" * 40), "no repository"),
        (hub_card("starter", "org/a", FILES, "c" * 40), "a name is"),
        (hub_card("../a", "org/a", FILES, "c" * 40), "a name is"),
        (hub_card("a", "org/a", {"../model.bin": b""}, "c" * 40), "may not be a file"),
        (hub_card("a", "org/a", {"/etc/passwd": b""}, "c" * 40), "may not be a file"),
        (hub_card("a", "org/a", {".hidden": b""}, "c" * 40), "may not be a file"),
        (hub_card("a", "org/a", {"voices/../../a.bin": b""}, "c" * 40), "may not be a file"),
        (hub_card("a", "org/a", {"voices//a.bin": b""}, "c" * 40), "may not be a file"),
        (hub_card("a", "org/a", {"voices/": b""}, "c" * 40), "may not be a file"),
        (hub_card("a", "org/a", {"voices/a.npz": b""}, "c" * 40), "may not be a file"),
        (hub_card("a", "org/a", FILES, "c" * 40, kind="tts"), "unknown kind"),
        (hub_card("a", "org/a", {"model.pkl": b""}, "c" * 40), "may not be a file"),
        (hub_card("a", "org/a", {"pytorch_model.pt": b""}, "c" * 40), "may not be a file"),
        (hub_card("a", "org/a", {}, "c" * 40), "no files"),
        (card("a", "packages", FILES), "its wheels do not give exactly its files"),
        (package_card("a", FILES, "p", b"", ["other.bin"]), "do not give exactly"),
        (hub_card("a", "o/a", FILES, None) + hub_card("a", "o/b", FILES, None), "two cards"),
    ],
)
def test_what_no_card_may_be_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse(text)


def test_sizes_are_told_for_people() -> None:
    told = [size(count) for count in (0, 999, 98_362_432, 269_060_552, 8_044_982_000)]
    assert told == ["0 B", "999 B", "98.4 MB", "269 MB", "8.0 GB"]
