"""The GPU script's checks on tiny models and the CPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from scripts import gpu_check
from scripts.gpu_check import Size
from tests.bench.conftest import CPU, SHAPE, VOCAB

pytestmark = pytest.mark.models

SIZE = Size(SHAPE, VOCAB, prompts=2, tokens=24, synthetic="tiny")
ROOT = Path(__file__).resolve().parents[2]


def test_all_checks_pass_here() -> None:
    found = list(gpu_check.check(CPU, SIZE))
    assert len(found) == 9
    assert not [check for check in found if not check.passed]


def test_without_a_gpu_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert gpu_check.main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 2


def test_it_needs_torch_transformers_and_numpy_alone() -> None:
    program = (
        "import sys; sys.path.insert(0, 'scripts'); import gpu_check\n"
        "ours = {'tyro', 'rich', 'soxr', 'soundfile', 'ctranslate2', 'faster_whisper',"
        " 'onnxruntime', 'num2words', 'sentencex', 'espeakng_loader', 'sounddevice'}\n"
        "sys.exit(f'imported: {ours & set(sys.modules)}' if ours & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
