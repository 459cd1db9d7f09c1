"""Opens the graphs of voices in onnxruntime, on the CPU or a CUDA GPU.

A GPU needs the package `onnxruntime-gpu`. It runs each session in a CUDA stream that waits for no
other stream.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import onnxruntime

from voiceloop.errors import EngineError
from voiceloop.placement import MemoryPart, chosen_device
from voiceloop.process import VARIABLE
from voiceloop.tts.errors import first_line

logger = logging.getLogger(__name__)

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
# By default, cuDNN tries all ways of computing a convolution for every new length.
_CUDA_OPTIONS = {"cudnn_conv_algo_search": "HEURISTIC"}
INSTALL = "install onnxruntime-gpu in place of onnxruntime"
SYNTHESIS = 60_000_000
"""Measured memory in bytes that a voice needs to compute a clause, without its weights."""


def session(file: Path, provider: str = CPU) -> onnxruntime.InferenceSession:
    """Open a graph. Raises onnxruntime's errors for a damaged file or a provider that fails."""
    options = onnxruntime.SessionOptions()
    # onnxruntime does not read this variable itself. With 0 it counts the cores.
    options.intra_op_num_threads = int(os.environ.get(VARIABLE, "0"))
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # A thread that spins between two windows would block a core that others need.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    providers: list[Any] = [CPU] if provider == CPU else [(CUDA, _CUDA_OPTIONS), CPU]
    return onnxruntime.InferenceSession(
        file, sess_options=options, providers=providers, enable_fallback=0
    )


def voice_part(folder: Path, device: str) -> Iterator[MemoryPart]:
    """Yield the memory that the graphs in `folder` take; nothing on a GPU, where it is unknown."""
    if device == "cpu":
        stored = sum(file.stat().st_size for file in folder.rglob("*.onnx"))
        yield MemoryPart("voice", stored + SYNTHESIS)


class Opener:
    """Opens graphs on the device that the setting `tts.device` names."""

    def __init__(
        self,
        device: str,
        providers: Callable[[], Sequence[str]] = onnxruntime.get_available_providers,
        opened: Callable[[Path, str], Any] = session,
    ) -> None:
        """Choose the device; `auto` means a CUDA GPU if this onnxruntime can use one. Raises
        EngineError for a device that onnxruntime cannot use."""
        usable = {"cuda": CUDA in providers(), "mps": False, "cpu": True}
        if device == "cuda" and not usable["cuda"]:
            raise EngineError(
                "this onnxruntime cannot use a GPU", f"{INSTALL}, or set tts.device to cpu or auto"
            )
        chosen = chosen_device("tts.device", device, ("cuda", "cpu"), usable, "onnxruntime")
        self._provider = CUDA if chosen == "cuda" else CPU
        self._named = device != "auto"
        self._opened = opened

    def __call__(self, file: Path) -> Any:
        """Open the graph in `file`. If a GPU that `auto` chose fails, warn once and use the CPU
        from then on.

        Raises what `session` raises, and EngineError if the setting names a GPU and it fails.
        """
        if self._provider == CPU:
            return self._opened(file, CPU)
        try:
            found = self._opened(file, CUDA)
            if found.get_providers()[0] == CUDA:
                return found
            reason = "its libraries for CUDA cannot be loaded"
        except Exception as error:  # onnxruntime's exception types are private
            reason = first_line(error)
        if self._named:
            raise EngineError(
                f"the voice cannot run on the GPU: {reason}", "set tts.device to cpu or auto"
            )
        self._provider = CPU
        logger.warning("the voice runs on the CPU, the GPU does not work: %s", reason)
        return self._opened(file, CPU)
