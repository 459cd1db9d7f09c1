"""Help, a mistake and what is being loaded come at once: nothing heavy is imported before."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import voiceloop
from voiceloop.bundled import bundled
from voiceloop.settings.config import SECTIONS

pytestmark = pytest.mark.real

HEAVY = ["torch", "transformers", "faster_whisper", "ctranslate2", "onnxruntime", "sounddevice"]
PROGRAM = f"""
import sys
from voiceloop.cli.main import main
try:
    status = main(sys.argv[1:])
except SystemExit as ended:
    status = ended.code
found = [name for name in {HEAVY} if name in sys.modules]
sys.exit(f"imported: {{found}}" if found else status)
"""


SHOWS = {
    "talk": {"vad", "asr", "llm", "tts", "turns", "mcp", "wake"},
    "doctor": set[str](),
    "serve": {*SECTIONS} - {"wake"},
}
"""Sections of the settings that the help of a command shows."""


def run(argv: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, *argv], cwd=folder, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        ["--version"],
        ["talk", "--help-all"],
        ["models", "list"],
        ["serve", "--help-all"],
        ["doctor", "--help"],
    ],
    ids=" ".join,
)
def test_it_imports_no_model_library(argv: list[str], tmp_path: Path) -> None:
    done = run(argv, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    if argv == ["--help"]:
        assert "--version" in done.stdout
    if argv[-1] == "--help-all":
        assert {one for one in SECTIONS if f" --{one}." in done.stdout} == SHOWS[argv[0]]
    if argv == ["--version"]:
        assert voiceloop.__version__ in done.stdout


@pytest.mark.parametrize(
    "argv",
    [["ask"], ["ask", "a.wav", "--nosuch"], ["bench", "llm", "--repeats", "some"]],
    ids=" ".join,
)
def test_a_mistake_imports_no_model_library_either(argv: list[str], tmp_path: Path) -> None:
    done = run(argv, tmp_path)
    assert done.returncode == 2, done.stderr
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["voiceloop", "hint"]
    assert done.stdout == ""


@pytest.mark.parametrize("text", ["[server]\nhost = '0.0.0.0'", "nonsense", "[llm]\nnosuch = 1"])
def test_help_is_there_where_settings_are_wrong(text: str, tmp_path: Path) -> None:
    (tmp_path / "voiceloop.toml").write_text(text, encoding="utf-8")
    wrong = run(["talk"], tmp_path)
    assert wrong.returncode == 2 and "voiceloop.toml" in wrong.stderr
    done = run(["talk", "--help"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "") and "usage" in done.stdout


FIRST = f"""
import io, sys
from voiceloop.cli.main import main

class Stream(io.StringIO):
    first = None
    def write(self, text):
        if self.first is None:
            self.first = text, [name for name in {HEAVY} if name in sys.modules]
        return super().write(text)

sys.stderr = Stream()
main(sys.argv[1:])
print(*sys.stderr.first)
"""


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        (["ask", str(bundled("models/starter/demo.wav"))], "whisper starter, llm starter, nosuch"),
        (["say", "Hello.", "--out", "x.wav"], "nosuch"),
    ],
    ids=["ask", "say"],
)
def test_what_is_loaded_is_told_before_it_is_imported(
    argv: list[str], names: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST, *argv, "--tts.engine", "nosuch"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"voiceloop: loading {names} … []\n"
