"""What processors and graphics cards come to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from voiceloop.doctor.examine import Case
from voiceloop.doctor.machine import Graphics, graphics_found, processor
from voiceloop.llm.gguf import libllama
from voiceloop.settings.config import AsrConfig, Config, LlmConfig

pytestmark = pytest.mark.pure

NONE = Graphics((), 0, torch_for_cuda=False, nvidia=False, cublas=False, apple=False)
CARD = Graphics(
    ("NVIDIA X",), 24_000_000_000, torch_for_cuda=True, nvidia=True, cublas=True, apple=False
)
GPU_LLM = Config(llm=LlmConfig(device="cuda"))
GPU_ASR = Config(asr=AsrConfig(device="cuda"))


@pytest.mark.parametrize(
    ("seen", "config", "mark", "told", "cure"),
    [
        (NONE, Config(), "ok", "no GPU", ""),
        (CARD, Config(), "ok", "NVIDIA X, 24.0 GB", ""),
        ({"names": (), "torch_for_cuda": False}, Config(), "warning", "without CUDA", "torch"),
        ({"names": ()}, Config(), "warning", "does not see it", "driver"),
        ({"names": ()}, GPU_LLM, "broken", "does not see it", "driver"),
        ({"cublas": False}, Config(), "warning", "cuBLAS", "nvidia-cublas-cu12"),
        ({"cublas": False}, GPU_ASR, "broken", "cuBLAS", "nvidia-cublas-cu12"),
        # AMD's cards are torch's alone.
        ({"nvidia": False, "torch_for_cuda": False}, Config(), "ok", "NVIDIA X", ""),
        ({"names": (), "nvidia": False, "apple": True}, Config(), "ok", "Apple", ""),
    ],
)
def test_graphics(
    seen: Graphics | dict[str, object], config: Config, mark: str, told: str, cure: str
) -> None:
    found = graphics_found(replace(CARD, **seen) if isinstance(seen, dict) else seen, config)
    assert (found.mark, told in found.text, cure in found.cure) == (mark, True, True), found
    assert bool(found.cure) == bool(cure)


def test_what_compiling_would_gain_is_told_where_it_would(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(capability: str, library: Path | None) -> list[str]:
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
        monkeypatch.setattr(libllama, "find_library", lambda: library)
        return [finding.check for finding in processor(Case(Config()))]

    package, compiled = Path("xllamacpp") / "one.so", libllama.COMPILED / "libllama.so"
    assert told("AVX512", package) == ["processor", "llama.cpp"]
    for capability, library in (("AVX2", package), ("AVX512", compiled), ("AVX512", None)):
        assert told(capability, library) == ["processor"]
