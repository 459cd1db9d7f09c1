"""The script of docs/api.md runs as it stands there, from a folder with nothing else in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from voiceloop.bundled import bundled

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[2]
(SCRIPT,) = re.findall(
    r"^```python\n(.*?)^```", (ROOT / "docs" / "api.md").read_text(), re.DOTALL | re.MULTILINE
)
"""The only program of the page."""
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def run(program: str, folder: Path, recording: Path) -> str:
    """Save an example as a user would, run it on a recording, and return what it prints."""
    (folder / "example.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "example.py", str(recording)],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert [one.name for one in folder.iterdir()] == ["example.py"]
    return done.stdout


def test_the_script_answers_a_question_in_a_few_lines(tmp_path: Path) -> None:
    assert len([line for line in SCRIPT.splitlines() if line.strip()]) <= 12
    (line,) = run(SCRIPT, tmp_path, bundled("models/starter/demo.wav")).splitlines()
    asked, _, heard = line.partition(" -> ")
    assert asked == "Why is the sky blue?" and "blue light" in heard
