"""Where models run: what is asked for, or the best that there is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from voiceloop.errors import EngineError
from voiceloop.placement import (
    URGENT,
    USUAL,
    available_memory,
    chosen_device,
    own_stream,
    torch_device,
)

pytestmark = pytest.mark.pure

BEST = ("cuda", "mps", "cpu")


@pytest.mark.parametrize(
    ("name", "there", "chosen"),
    [
        ("auto", ("cuda", "mps"), "cuda"),
        ("auto", ("mps",), "mps"),
        ("auto", (), "cpu"),
        ("cpu", ("cuda", "mps"), "cpu"),
        ("mps", ("cuda", "mps"), "mps"),
    ],
)
def test_the_device_is_the_quickest_that_there_is(
    name: str, there: tuple[str, ...], chosen: str
) -> None:
    found = {device: device in (*there, "cpu") for device in BEST}
    assert chosen_device("llm.device", name, BEST, found) == chosen


def test_what_auto_leaves_out_has_to_be_named() -> None:
    found = {"cuda": False, "mps": True, "cpu": True}
    assert chosen_device("tts.device", "auto", ("cuda", "cpu"), found) == "cpu"
    assert chosen_device("tts.device", "mps", ("cuda", "cpu"), found) == "mps"


def test_a_device_that_is_not_there_is_no_choice() -> None:
    for name in ("cuda", "mps"):
        with pytest.raises(EngineError, match=f"finds no {name} device") as caught:
            chosen_device("tts.device", name, BEST, {"cuda": False, "mps": False, "cpu": True})
        assert caught.value.hint == "set tts.device to cpu or auto"


def test_the_processor_is_always_there() -> None:
    assert torch_device("llm.device", "cpu").type == "cpu"


def test_on_a_gpu_each_thread_has_a_stream_and_the_urgent_one_goes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[tuple[torch.device, int]] = []
    taken: list[object] = []

    def stream(device: torch.device, priority: int) -> object:
        made.append((device, priority))
        return object()

    monkeypatch.setattr(torch.cuda, "Stream", stream)
    monkeypatch.setattr(torch.cuda, "set_stream", taken.append)
    own_stream(torch.device("cpu"), URGENT)
    assert not made and not taken
    gpu = torch.device("cuda")
    own_stream(gpu)
    own_stream(gpu, URGENT)
    assert made == [(gpu, USUAL), (gpu, URGENT)]
    assert len({id(one) for one in taken}) == 2 and URGENT < USUAL


def test_who_only_asks_where_to_run_imports_no_torch() -> None:
    program = "import sys, voiceloop.runner, voiceloop.tts.piper; print('torch' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert told.stdout == "False\n", told.stderr


def test_memory_within_a_control_group(tmp_path: Path) -> None:
    def write(name: str, text: str) -> None:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    assert available_memory(tmp_path) is None
    write("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:   1000 kB\n")
    assert available_memory(tmp_path) == 1_024_000
    write("proc/self/cgroup", "0::/a/b\n")
    write("sys/fs/cgroup/a/memory.max", "500000\n")
    write("sys/fs/cgroup/a/memory.current", "400000\n")
    assert available_memory(tmp_path) == 100_000
    write("sys/fs/cgroup/a/memory.stat", "anon 5\ninactive_file 7000\n")
    assert available_memory(tmp_path) == 107_000
    write("sys/fs/cgroup/a/b/memory.max", "max\n")
    assert available_memory(tmp_path) == 107_000
