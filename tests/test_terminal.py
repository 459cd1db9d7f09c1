"""Nothing that comes from files, models or names steers a terminal."""

from __future__ import annotations

import io
import json
import logging
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from tests.cli.test_voices import put_piper
from tests.ggufs import network, tokenizer, write_gguf
from tests.terminals import TerminalText
from voiceloop.bundled import bundled
from voiceloop.catalog.store import RECORD, ModelStore
from voiceloop.cli.main import main
from voiceloop.doctor.examine import printer
from voiceloop.doctor.findings import Finding
from voiceloop.errors import VoiceloopError
from voiceloop.status import loading, print_error
from voiceloop.terminal import printable, tell

pytestmark = pytest.mark.real

TITLE, CLEAR, EIGHT_BIT = "\x1b]0;PWNED\x07", "\x1b[2J", "\x9b31m"
HOSTILE = f"a{TITLE}b{CLEAR}c{EIGHT_BIT}d"
TARGET = bundled("models/starter/llm-target")


def harmless(shown: str) -> bool:
    return all(char == "\n" or printable(char) == char for char in shown)


@given(st.text())
def test_a_line_is_one_line_and_harmless(text: str) -> None:
    out = io.StringIO()
    tell(text, out)
    assert out.getvalue().endswith("\n") and out.getvalue().count("\n") == 1
    assert harmless(out.getvalue())


@given(st.text(), st.text())
def test_errors_are_two_lines_at_most(message: str, hint: str) -> None:
    kept, sys.stderr = sys.stderr, io.StringIO()
    try:
        print_error(VoiceloopError(message, hint))
        shown = sys.stderr.getvalue()
    finally:
        sys.stderr = kept
    assert harmless(shown) and shown.count("\n") == 1 + bool(hint)


@pytest.mark.parametrize("stream", [io.StringIO(), TerminalText()])
def test_what_is_loaded_is_named_harmlessly(stream: io.StringIO) -> None:
    with loading(HOSTILE, stream):
        pass
    assert harmless(stream.getvalue().replace("\r\x1b[K", ""))


def test_what_the_doctor_finds_is_told_harmlessly() -> None:
    out = io.StringIO()
    with printer(out, as_json=False) as show:
        show(Finding("models", "broken", HOSTILE, HOSTILE))
    assert harmless(out.getvalue()) and "PWNED" in out.getvalue()


def shown(words: list[str], capsys: pytest.CaptureFixture[str], status: int | None = 2) -> str:
    """What a command prints."""
    found = main(words)
    out, err = capsys.readouterr()
    assert status is None or found == status, err
    assert harmless(out + err)
    return out + err


def test_names_of_files_are_harmless(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    silent = tmp_path / f"{HOSTILE}.wav"
    soundfile.write(silent, np.zeros(16_000, np.float32), 16_000)
    whole = silent.read_bytes()
    cut = tmp_path / f"cut{HOSTILE}.wav"
    cut.write_bytes(whole[:-1000])
    text = tmp_path / f"text{HOSTILE}.wav"
    text.write_text("hello " * 20)
    files = [str(path) for path in (silent, cut, text, tmp_path / f"none{HOSTILE}")]
    assert shown(["transcribe", *files], capsys).count("PWNED") >= 7
    for path in files:
        assert "PWNED" in shown(["ask", path, "--pace", "max"], capsys, None)
        shown(["ask", str(silent), "--out", f"{path}.mp3"], capsys)
        shown(["ask", str(silent), "--trace", f"{path}.txt"], capsys)
        shown(["config", "--config", path], capsys)
        shown(["config", "--llm.target", path, "--preset", HOSTILE], capsys)
        shown(["replay", path], capsys)


def test_what_model_files_say_is_harmless(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOICELOOP_MODELS", str(tmp_path / "models"))
    folder = tmp_path / "model"
    ask = ["ask", str(bundled("models/starter/demo.wav")), "--llm.target"]
    for template in (
        "{{ raise_exception(hostile) }}".replace("hostile", json.dumps(HOSTILE)),
        "{% nothing" + HOSTILE + " %}",
    ):
        shutil.copytree(TARGET, folder, dirs_exist_ok=True)
        (folder / "chat_template.jinja").write_text(template)
        assert "cannot be used" in shown([*ask, str(folder)], capsys)
    shutil.copytree(TARGET, folder, dirs_exist_ok=True)
    config = json.loads((folder / "config.json").read_text())
    for told in ({"model_type": HOSTILE}, {"quantization_config": {"quant_method": HOSTILE}}):
        (folder / "config.json").write_text(json.dumps(config | told))
        assert "PWNED" in shown([*ask, str(folder)], capsys)
    words = tokenizer("gpt-2")
    model = network(words.get_vocab_size())
    for told in ({"pre": HOSTILE}, {"pre": "gpt-2", "architecture": HOSTILE}):
        made: Any = told
        write_gguf(tmp_path / "small.gguf", model, words, **made)
        assert "PWNED" in shown([*ask, str(tmp_path / "small.gguf")], capsys)


def test_lists_of_models_and_voices_are_harmless(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOICELOOP_MODELS", str(tmp_path / "models"))
    put_piper(ModelStore(), "en_US-x", [HOSTILE, "ann"])
    assert shown(["voices", "--tts.engine", "espeak"], capsys, 0).count("PWNED") == 1
    piper = ["voices", "--tts.engine", "piper", "--tts.model", "en_US-x"]
    assert shown(piper, capsys, None).count("PWNED") >= 1
    (record,) = (tmp_path / "models").glob(f"*/{RECORD}")
    told = json.loads(record.read_text())
    record.write_text(json.dumps(told | {"name": HOSTILE}))
    (tmp_path / "models" / f"{HOSTILE}@hub").mkdir()
    assert shown(["models", "list"], capsys, 0).count("PWNED") >= 2
    assert shown(["models", "verify"], capsys, 1).count("PWNED") >= 1
    shown(["models", "rm", HOSTILE], capsys, None)


def test_lines_of_the_log_are_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    kept = logging.root.handlers[:]
    logging.root.handlers.clear()
    try:
        assert main(["config"]) == 0
        logging.getLogger("voiceloop.test").warning("it says %s", HOSTILE)
        try:
            raise RuntimeError(HOSTILE)
        except RuntimeError:
            logging.getLogger("voiceloop.test").exception("it broke")
    finally:
        logging.root.handlers[:] = kept
    err = capsys.readouterr().err
    assert "voiceloop: it says a\\x1b" in err and "Traceback" in err and harmless(err)
