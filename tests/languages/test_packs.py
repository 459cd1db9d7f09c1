"""The packs of languages: their tables have every entry and no other, and a missing one is told."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from voiceloop.languages import Language, installed
from voiceloop.languages.language import PACKS, missing, table
from voiceloop.languages.spoken import SpeakingRules
from voiceloop.skills.phrases import Phrases, Templates
from voiceloop.skills.words import NumberWords

pytestmark = pytest.mark.pure


def names(kind: Any) -> set[str]:
    return {field.name for field in fields(kind)}


@pytest.mark.parametrize("code", ["en", *PACKS])
def test_a_table_has_no_entry_that_nothing_reads(code: str) -> None:
    assert code in installed()
    language, phrases = table(code, "language"), table(code, "phrases")
    assert language.keys() <= names(Language)
    assert language["spoken"].keys() <= names(SpeakingRules)
    assert phrases.keys() <= names(Phrases)
    assert phrases["words"].keys() <= names(NumberWords)
    assert table(code, "requests").keys() <= names(Templates)


@pytest.mark.parametrize("code", ["de", "de-AT", "DE_at"])
def test_a_missing_pack_is_told_with_the_way_to_install_it(code: str) -> None:
    told = missing(code, ("en", "es"))
    assert "German" in told and "pip install packs/lang-de" in told
    assert missing(code, ("en", "de")) == ""


@pytest.mark.parametrize("code", ["en", "fr", "auto", ""])
def test_nothing_is_told_of_a_language_that_has_no_pack_to_install(code: str) -> None:
    assert missing(code, ("en",)) == ""
