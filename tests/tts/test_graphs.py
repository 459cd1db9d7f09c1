"""Where graphs of voices run: what `tts.device` says, with builds of onnxruntime made up for it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

import pytest

from voiceloop.errors import EngineError
from voiceloop.tts.graphs import CPU, CUDA, Opener

pytestmark = pytest.mark.models

FILE = Path("voice.onnx")


@dataclass
class Session:
    """A session that runs where it can."""

    provider: str

    def get_providers(self) -> list[str]:
        return [self.provider] if self.provider == CPU else [self.provider, CPU]


def opener(device: str, *, build: bool, fails: str = "") -> Opener:
    """With a build for CUDA; a GPU `fails` with an error, or by not being used."""

    def opened(file: Path, provider: str) -> Session:
        if provider == CUDA and fails == "raises":
            raise RuntimeError("CUDA failure 35\nmore")
        return Session(CPU if fails else provider)

    return Opener(device, lambda: [CUDA, CPU] if build else [CPU], opened)


@pytest.mark.parametrize(
    ("device", "build", "provider"),
    [("auto", True, CUDA), ("auto", False, CPU), ("cpu", True, CPU), ("cuda", True, CUDA)],
)
def test_the_device_is_what_the_setting_says(device: str, build: bool, provider: str) -> None:
    assert opener(device, build=build)(FILE).provider == provider


@pytest.mark.parametrize("fails", ["raises", "is not used"])
def test_a_gpu_that_does_not_work_is_told_once_and_the_cpu_speaks(
    fails: str, caplog: pytest.LogCaptureFixture
) -> None:
    opened = opener("auto", build=True, fails=fails)
    with caplog.at_level(logging.WARNING):
        assert [opened(FILE).provider for _ in range(3)] == [CPU] * 3
    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    with pytest.raises(EngineError, match="cannot run on the GPU"):
        opener("cuda", build=True, fails=fails)(FILE)


def test_a_device_that_this_onnxruntime_cannot_use_is_no_choice() -> None:
    with pytest.raises(EngineError) as caught:
        opener("cuda", build=False)
    assert "onnxruntime-gpu" in caught.value.hint
    with pytest.raises(EngineError, match="onnxruntime finds no mps device"):
        opener("mps", build=True)
