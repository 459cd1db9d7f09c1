"""The list of voices: what is here, what can be pulled, and how to have each speak."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tts.piper_voices import RATE, write_piper_voice
from voiceloop.catalog.piper import split_piper
from voiceloop.catalog.store import ModelStore, cards
from voiceloop.cli.main import main
from voiceloop.cli.voices import Listed, listed, table
from voiceloop.engines import Tts
from voiceloop.settings.config import TtsConfig
from voiceloop.tts.piper import piper

pytestmark = pytest.mark.models

KOKORO = ("af_heart", "bm_lewis", "ef_dora", "jf_alpha")


def put_piper(store: ModelStore, name: str, speakers: Sequence[str] = (), rate: int = RATE) -> None:
    with store.workshop(name, "hub") as shop:
        file = shop / "source" / f"{name}.onnx"
        write_piper_voice(file, speakers=speakers, audio={"sample_rate": rate})
        split_piper(file, shop / "made")
        store.put(shop / "made", name, "hub", {})


def put_kokoro(store: ModelStore) -> None:
    with store.workshop("kokoro-82m", "hub") as shop:
        (shop / "made" / "voices").mkdir(parents=True)
        for voice in KOKORO:
            (shop / "made" / "voices" / f"{voice}.bin").write_bytes(b"style")
        store.put(shop / "made", "kokoro-82m", "hub", {})


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelStore:
    monkeypatch.setenv("VOICELOOP_MODELS", str(tmp_path / "models"))
    return ModelStore()


def names(found: Sequence[Listed], state: str) -> list[str]:
    return [one.voice.name for one in found if one.state == state]


def lines(config: TtsConfig, tts: Tts | None = None) -> list[str]:
    return list(table(config, tts, listed(config, tts)))


def test_where_nothing_is_here_all_that_can_be_pulled_is_told(store: ModelStore) -> None:
    found = listed(TtsConfig(), None)
    models = {card.name for card in cards() if card.kind in ("piper", "kokoro")}
    assert {one.state for one in found} == {"to pull"}
    assert {one.model for one in found} == models
    assert len(found) == len(models) - 1 + 41
    first, english, *rest = lines(TtsConfig())
    assert (first, english) == ("can be pulled, by voiceloop models pull NAME:", "  English")
    kokoro = [line.split() for line in rest if "kokoro-82m" in line]
    assert kokoro[0] == ["kokoro-82m", "28", "voices:", "American,", "British", "114", "MB"]
    assert len(kokoro) == 6, "languages"
    assert sum("en_US-joe-medium" in line for line in rest) == 1, "it has two sources"


def test_what_was_pulled_for_another_engine_says_how_it_speaks(store: ModelStore) -> None:
    put_kokoro(store)
    put_piper(store, "de_DE-thorsten-medium")
    found = listed(TtsConfig(), None)
    assert names(found, "here") == ["af_heart", "bm_lewis", "ef_dora", "de_DE-thorsten-medium"]
    assert not {"kokoro-82m", "de_DE-thorsten-medium"} & {
        one.model for one in found if one.state == "to pull"
    }
    told = lines(TtsConfig())
    assert "here as well, with --tts.engine kokoro --tts.voice NAME:" in told
    assert "here as well, with --tts.engine piper --tts.voice NAME:" in told
    told = lines(TtsConfig(engine="coqui", model="somewhere"))
    assert "here as well, with --tts.engine kokoro --tts.model kokoro-82m --tts.voice NAME:" in told
    assert "here as well, with --tts.engine piper --tts.model NAME:" in told


def test_of_the_engine_in_use_only_what_it_can_speak_is_to_choose(store: ModelStore) -> None:
    put_piper(store, "en_US-joe-medium")
    put_piper(store, "en_GB-vctk-low", ("p225", "p226"))
    put_piper(store, "nl_BE-nathalie-x_low", rate=2 * RATE)
    config = TtsConfig(engine="piper")
    tts = piper(config)
    found = listed(config, tts)
    assert names(found, "in use") == ["en_US-joe-medium"]
    assert names(found, "to choose") == ["en_GB-vctk-low/p225", "en_GB-vctk-low/p226"]
    assert names(found, "here") == ["nl_BE-nathalie-x_low"]
    told = lines(config, tts)
    head = "piper en_US-joe-medium speaks (*); --tts.voice NAME chooses another voice:"
    assert told[:2] == [head, "  English"]
    assert "  * en_US-joe-medium           Joe, American man" in told
    assert "    en_GB-vctk-low/p225        Vctk p225 (low), British" in told
    assert max(map(len, told)) <= 80


def test_a_program_is_told_the_same(store: ModelStore, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where the configured voice is not here: that is told, and the rest."""
    put_kokoro(store)
    assert main(["voices", "--json", "--tts.engine", "piper"]) == 0
    shown = capsys.readouterr()
    told = [json.loads(line) for line in shown.out.splitlines()]
    assert told == [one.record() for one in listed(TtsConfig(engine="piper"), None)]
    heart = {
        "name": "af_heart",
        "label": "Heart, American woman",
        "language": "en-us",
        "language_name": "English",
        "state": "here",
        "engine": "kokoro",
        "model": "kokoro-82m",
        "bytes": None,
    }
    assert heart in told
    assert shown.err.splitlines()[-2:] == [
        "voiceloop: Piper joe (medium) is not on this machine (63.2 MB)",
        "hint: voiceloop models pull en_US-joe-medium",
    ]


def test_espeak_fits_into_the_list(store: ModelStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["voices"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "espeak speaks, with its voice en-us; a voice below sounds better"
    assert "  Welsh" not in told and "--tts.engine espeak lists a hundred" in told[-2]
    assert main(["voices", "--tts.engine", "espeak"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert "  * en-us                      American" in told
    assert told[-1].startswith("other engines, by --tts.engine: coqui, kokoro, piper")
    assert max(map(len, told)) <= 80
    at = told.index("can be pulled, by voiceloop models pull NAME:")
    assert at < told.index("  Welsh") < told.index("  other languages")
