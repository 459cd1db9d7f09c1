"""Help comes at once: nothing heavy is imported for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import voiceloop

pytestmark = pytest.mark.pure

HEAVY = ["torch", "transformers", "faster_whisper", "ctranslate2", "onnxruntime", "sounddevice"]
PROGRAM = f"""
import sys
from voiceloop.cli import main
try:
    status = main(sys.argv[1:])
except SystemExit as ended:
    status = ended.code
found = [name for name in {HEAVY} if name in sys.modules]
sys.exit(status or (f"imported: {{found}}" if found else 0))
"""


@pytest.mark.parametrize(
    "argv",
    [
        ["--help"],
        ["--version"],
        ["config"],
        ["ask", "--help"],
        ["transcribe", "--help"],
        ["say", "--help"],
    ],
    ids=" ".join,
)
def test_it_imports_no_model_library(argv: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *argv], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    if argv == ["--version"]:
        assert voiceloop.__version__ in done.stdout
