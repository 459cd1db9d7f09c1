"""The GPU script on a processor and a tiny pair, and what only a GPU would show, without one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from lab.decoding.captures import Captures
from lab.decoding.pair import Pair, without_graphs
from lab.decoding.rounds import counted
from lab.decoding.steps import time_steps
from lab.decoding.synthetic import Shape, drawn_pair
from lab.gpu.fixed import WAYS
from lab.gpu.rows import Row, checked, rows
from scripts import gpu_check
from tests.lab.conftest import CPU
from voiceloop.errors import OutOfMemory
from voiceloop.llm.decode.captured import Plainly
from voiceloop.settings.config import LlmConfig

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[2]
LACKING = """
msgspec soxr soundfile sentencex num2words ctranslate2 faster_whisper onnxruntime
espeakng_loader prometheus_client websockets threadpoolctl uvloop sounddevice TTS scipy jiwer
""".split()
"""Packages that a bare machine does not have."""


def test_the_table_is_whole_where_nothing_but_torch_transformers_and_numpy_is_there() -> None:
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({LACKING}))\n"
        "sys.path.insert(0, 'scripts'); import gpu_check\n"
        "sys.exit(gpu_check.main(['--device', 'cpu', '--pairs', 'tiny']))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert not [line for line in lines if line.startswith("FAILED")]
    passed = [line for line in lines if line.startswith("ok")]
    for name in (
        *(f"rounds of fixed shape say what plain ones say, {way}" for way in WAYS),
        "passes of fixed shape give the same logits",
        "plain text equals that of transformers",
        "questions understood and answered, as the program is",
    ):
        assert [line for line in passed if name in line], name
    away = [line for line in lines if line.startswith("not here")]
    others = [line for line in away if "CUDA" not in line]
    assert len(away) == 8 and len(others) == 2
    assert "--gguf" in others[0] and "CTranslate2 is not installed" in others[1]
    for name in (
        *("share of the bandwidth floor", "beside the other two", "voice to voice"),
        *("a round with a layer", "Whisper's encoder, the program's own"),
    ):
        assert [line for line in lines if name in line], name


def test_without_a_gpu_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert gpu_check.main([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 2


def test_whatever_a_section_raises_is_a_row_and_the_next_one_begins() -> None:
    def breaks() -> Iterator[Row]:
        yield checked("first", True, "seen")
        raise RuntimeError("the second\nand more")

    def too_large() -> Iterator[Row]:
        raise OutOfMemory("17 GB are needed", "take a smaller pair")
        yield

    found = list(rows({"a": breaks, "b": too_large, "c": lambda: [checked("last", False, "")]}))
    assert [(row.name, row.verdict) for row in found] == [
        ("first", "ok"),
        ("a", "FAILED"),
        ("b", "not here"),
        ("last", "FAILED"),
    ]
    assert found[1].found == "RuntimeError: the second"
    assert [row.failed for row in found] == [False, True, False, True]


def test_kernels_launches_and_waits_are_told_apart() -> None:
    own = ["void flash::flash_fwd_kernel<int>(x)", "gemm", "Memcpy HtoD (Pinned -> Device)", "gemm"]
    calls = ["cudaGraphLaunch", "cudaLaunchKernel", "cudaMemcpyAsync", "cudaEventSynchronize"]
    ends = "cudaDeviceSynchronize"
    found = [*((name, True) for name in own * 2), *((name, False) for name in [*calls * 2, ends])]
    work = counted(found, 2)
    assert (work.kernels, work.launches, work.waits) == (3, 2, 1)
    assert work.attention == ("flash_fwd_kernel",)


def test_what_is_captured_is_counted_and_can_be_left_out() -> None:
    config = LlmConfig(
        max_new_tokens=16, context=256, cache_mb=4, num_speculative_tokens=4, device="cpu"
    )
    shape = Shape(48, 64, 2, 4, 2, 12)
    pair = Pair(*drawn_pair(shape, 512, CPU, torch.float64), config, Plainly)
    captures = pair.captures
    assert isinstance(captures, Captures) and captures.graphs == captures.plain > 0
    costs = time_steps(*pair.decoders, (1, 2, 3), (4, 5, 6), {2, 4}, pair.captured)
    assert {*costs.target} == {1, 2, 3, 5} and costs.draft > 0
    replays = captures.replays
    assert replays > 0
    list(without_graphs(pair).conversation().reply("ba", 0))
    assert captures.replays == replays
    list(pair.conversation().reply("ba", 0))
    assert captures.replays > replays
