"""The engine of docs/engines.md, built and installed as a package of somebody else's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile as sf

pytestmark = pytest.mark.models

PAGE = Path(__file__, "../../docs/engines.md").resolve().read_text(encoding="utf-8")
ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```\w+\n# (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the page's package is installed."""
    source, target = tmp_path_factory.mktemp("beeper"), tmp_path_factory.mktemp("site")
    files = dict(BLOCK.findall(PAGE))
    assert files.keys() == {"pyproject.toml", "beeper.py"}
    for name, text in files.items():
        (source / name).write_text(text, encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    alone = ["--no-deps", "--no-build-isolation", "--target", str(target), str(source)]
    subprocess.run([*pip, *alone], check=True, capture_output=True)
    return {**os.environ, "PYTHONPATH": f"{target}{os.pathsep}{ROOT}"}


def run(environment: dict[str, str], *argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "voiceloop", *argv, "--tts.engine", "beeper"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def test_it_speaks(installed: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "s.wav"
    done = run(installed, "say", "One, two: 3.", "--tts.voice", "high", "--out", str(out))
    assert done.returncode == 0, done.stderr
    pcm, rate = sf.read(out)
    assert rate == 16_000 and len(pcm) == 3 * 1600  # three words of a tenth of a second
    spectrum = np.abs(np.fft.rfft(pcm[:1600]))
    assert np.argmax(spectrum) * rate / 1600 == pytest.approx(880, abs=10)


def test_it_is_listed_and_answers(installed: dict[str, str], tmp_path: Path) -> None:
    listed = run(installed, "voices")
    assert listed.stdout.startswith("beeper speaks (*)")
    assert "    high\n  * low\n" in listed.stdout and "espeak" in listed.stdout
    wrong = run(installed, "voices", "--tts.voice", "middle")
    assert wrong.returncode == 2
    assert wrong.stderr.splitlines()[-1] == "hint: choose one of: high, low"
    demo = str(ROOT / "models/starter/demo.wav")
    asked = run(installed, "ask", demo, "--pace", "max", "--json")
    assert asked.returncode == 0, asked.stderr
    assert '"outcome": "done"' in asked.stdout
