"""`voiceloop doctor` as a user meets it: what it prints, what it keeps to itself, how it ends."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from voiceloop.settings.presets import PRESETS

pytestmark = pytest.mark.real

STAGES = ("voice detector", "recogniser", "language model", "synthesizer")
ROOT = Path(__file__).resolve().parents[2]


def doctor(
    folder: Path, *argv: str, environ: Mapping[str, str] | None = None, cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, of a user whose folders are in `folder`."""
    own = {key: os.environ[key] for key in os.environ if not key.startswith(("XDG_", "VOICELOOP_"))}
    own |= {"HOME": str(folder), "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "voiceloop", "doctor", *argv],
        env=own | dict(environ or {}),
        cwd=cwd,
        capture_output=True,
        text=True,
    )


def records(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What is told as JSON, by check; of several the last."""
    assert done.stderr == ""
    return {one["check"]: one for one in map(json.loads, done.stdout.splitlines())}


def test_everything_is_tried_and_each_stage_works_and_is_timed(tmp_path: Path) -> None:
    done = doctor(tmp_path, "--json")
    assert done.returncode == 0, done.stdout
    told = records(done)
    assert [told[stage]["mark"] for stage in STAGES] == ["ok"] * 4
    assert told["recogniser"]["figures"]["s_per_s"] > 0
    assert told["language model"]["figures"]["tokens_per_s"] > 0
    assert told["language model"]["figures"]["first_token_s"] > 0
    assert told["synthesizer"]["figures"]["s_per_s"] > 0
    assert told["machine"]["text"].count(";") == 3
    assert told["preset"]["text"].startswith(tuple(PRESETS))
    assert not list(tmp_path.rglob("voiceloop")), "it leaves nothing behind"


def test_a_line_has_a_mark_and_a_broken_one_a_cure(tmp_path: Path) -> None:
    done = doctor(tmp_path, "--preset", "cpu")
    assert done.returncode == 1 and done.stderr == ""
    assert "\x1b" not in done.stdout, "there are no colours in a pipe"
    lines = done.stdout.splitlines()
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        assert re.match(r"(ok {7}|warning {2}|broken {3}|         cure: )\S", line)
        assert not line.startswith("broken") or after.startswith("         cure: ")
    place = next(place for place, line in enumerate(lines) if line.startswith("broken"))
    assert "recogniser: Whisper tiny.en is not on this machine" in lines[place]
    assert lines[place + 1].endswith("cure: voiceloop models pull cpu")
    # What needs no model of the preset is tried all the same.
    assert any(line.startswith("ok       voice detector") for line in lines)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nonsense", "not valid TOML"),
        ("[server]\nmax_sessions = 1", "server.max_sessions"),
        ("[llm]\nnosuch = 1", "llm.nosuch"),
    ],
)
def test_settings_that_every_other_command_refuses_are_told_and_the_rest_is_tried(
    tmp_path: Path, text: str, told: str
) -> None:
    (tmp_path / "voiceloop.toml").write_text(text, encoding="utf-8")
    done = doctor(tmp_path, "--json", "--turns.sound", "smart-turn-v3.2", cwd=tmp_path)
    assert done.returncode == 1
    found = records(done)
    assert found["configuration"]["mark"] == "broken"
    assert told in found["configuration"]["text"] and found["configuration"]["cure"]
    assert found["language model"]["mark"] == "ok"
    assert found["end of turn"]["mark"] == "broken", "flags count all the same"


def test_models_are_never_fetched_or_converted(tmp_path: Path) -> None:
    (tmp_path / "x.gguf").write_bytes(b"not a model")
    models = ["--asr.model", "some/repository", "--llm.target", str(tmp_path / "x.gguf")]
    found = records(doctor(tmp_path, "--json", *models, environ={"HF_HUB_OFFLINE": "0"}))
    assert "some/repository of the hub is not on this machine" in found["recogniser"]["text"]
    assert "cannot read the model" in found["language model"]["text"]
    assert not (tmp_path / ".cache").exists()


def test_a_library_that_cannot_be_loaded_breaks_its_stages_alone(tmp_path: Path) -> None:
    stub = tmp_path / "stub"
    stub.mkdir()
    (stub / "ctranslate2.py").write_text("raise OSError('libx.so: cannot open')\n")
    (stub / "sounddevice.py").write_text("raise OSError('PortAudio library not found')\n")
    path = os.pathsep.join((str(stub), str(ROOT)))
    done = doctor(tmp_path, "--json", environ={"PYTHONPATH": path})
    assert done.returncode == 1
    found = records(done)
    assert found["recogniser"]["mark"] == "broken"
    assert "libx.so: cannot open" in found["recogniser"]["text"]
    assert found["microphone"]["mark"] == "warning"
    assert "PortAudio is not installed" in found["microphone"]["text"]
    assert found["language model"]["mark"] == found["synthesizer"]["mark"] == "ok"


PLANTED = "annabel"
KEY = "k3y-that-nobody-may-see"


def test_nothing_private_is_printed(tmp_path: Path) -> None:
    """Every way in which something goes wrong is gone, of a user with a name and a key."""
    home = tmp_path / PLANTED / "home"
    models = tmp_path / PLANTED / "models"
    folder = models / "tiny.en@hub"
    for made in (home, folder, home / ".config" / "voiceloop", home / "llm"):
        made.mkdir(parents=True)
    (folder / "voiceloop.json").write_text("{")
    (home / "llm" / "config.json").write_text(f'{{"model_type": "{KEY}"')
    environ = {
        "USER": PLANTED,
        "LOGNAME": PLANTED,
        "OPENAI_API_KEY": KEY,
        "VOICELOOP_LLM_KEY": KEY,
        "VOICELOOP_MODELS": str(models),
        "HTTPS_PROXY": f"http://{PLANTED}:{KEY}@proxy.{PLANTED}.example:1",
    }
    server = f"https://{PLANTED}.example/v1"
    (home / ".config" / "voiceloop" / "config.toml").write_text(
        f"[llm]\nsystem = 'You talk with {PLANTED}. Her key is {KEY}.'\n"
    )
    broken = home / "broken.toml"
    broken.write_text(f"[llm]\nbase_url = '{server}'\n", encoding="utf-8")
    ways = {
        "nothing is wrong": [],
        "folders that hold nothing": ["--llm.target", str(home / "llm"), "--asr.model", str(home)],
        "no such folders": ["--llm.target", "~/nosuch", "--tts.engine", "piper", "--tts.model",
                            str(home / "no.onnx")],
        "an address with a key": ["--llm.engine", "openai", "--llm.target", "x", "--llm.base-url",
                                  f"https://me:{KEY}@{PLANTED}.example/v1"],
        "a file that is named": ["--config", str(broken)],
    }  # fmt: skip
    host = socket.gethostname()
    secrets = [PLANTED, KEY, str(tmp_path), *([host] if host != "localhost" else [])]
    for way, argv in ways.items():
        shape = ["--json"] if way == "nothing is wrong" else []
        done = doctor(home, *argv, *shape, environ=environ)
        shown = done.stdout + done.stderr
        assert done.returncode in (0, 1) and "synthesizer" in shown, shown
        for secret in secrets:
            known = re.search(rf"(?<!\w){re.escape(secret)}(?!\w)", shown, re.IGNORECASE)
            assert not known, f"{way}: {known}"
    assert "~/.config/voiceloop/config.toml" in shown
    assert "$VOICELOOP_MODELS" in shown
