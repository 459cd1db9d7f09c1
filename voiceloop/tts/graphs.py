"""Opening the graphs of voices for onnxruntime: on the CPU, or on the GPU of whoever has the build.

onnxruntime does what is asked of a session there in a stream of its own, which waits for nobody.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import onnxruntime

from voiceloop.errors import EngineError
from voiceloop.memoryplan import MemoryPart
from voiceloop.placement import chosen_device
from voiceloop.threads import VARIABLE

logger = logging.getLogger(__name__)

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
# Else it tries out all ways of computing a convolution for every length that it has not met.
_CUDA_OPTIONS = {"cudnn_conv_algo_search": "HEURISTIC"}
INSTALL = "install onnxruntime-gpu in place of onnxruntime"
SYNTHESIS = 60_000_000
"""Bytes in which a voice computes a clause, as measured."""


def session(file: Path, provider: str = CPU) -> onnxruntime.InferenceSession:
    """Raises what onnxruntime does for a file that is damaged, or a provider that does not work."""
    options = onnxruntime.SessionOptions()
    # It does not look itself at what bounds threads; 0 leaves it to count the cores.
    options.intra_op_num_threads = int(os.environ.get(VARIABLE, "0"))
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Between two windows there is nothing to wait for on a core that others need.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    providers: list[Any] = [CPU] if provider == CPU else [(CUDA, _CUDA_OPTIONS), CPU]
    return onnxruntime.InferenceSession(
        file, sess_options=options, providers=providers, enable_fallback=0
    )


def voice_part(folder: Path, device: str) -> Iterator[MemoryPart]:
    """What the graphs in a folder take on a device of that type; on a GPU nobody knows."""
    if device == "cpu":
        stored = sum(file.stat().st_size for file in folder.rglob("*.onnx"))
        yield MemoryPart("voice", stored + SYNTHESIS)


class Opener:
    """Opens graphs on the device that `tts.device` names."""

    def __init__(
        self,
        device: str,
        providers: Callable[[], Sequence[str]] = onnxruntime.get_available_providers,
        opened: Callable[[Path, str], Any] = session,
    ) -> None:
        """`auto` is CUDA's GPU where this onnxruntime can use one. Raises EngineError for a device
        that it cannot use."""
        there = {"cuda": CUDA in providers(), "mps": False, "cpu": True}
        if device == "cuda" and not there["cuda"]:
            raise EngineError(
                "this onnxruntime cannot use a GPU", f"{INSTALL}, or set tts.device to cpu or auto"
            )
        chosen = chosen_device("tts.device", device, ("cuda", "cpu"), there, "onnxruntime")
        self._provider = CUDA if chosen == "cuda" else CPU
        self._named = device != "auto"
        self._opened = opened

    def __call__(self, file: Path) -> Any:
        """A session on that device; by `auto` on the CPU where the GPU does not work, which is said
        once.

        Raises what `session` does, and EngineError where a GPU that was named does not work.
        """
        if self._provider == CPU:
            return self._opened(file, CPU)
        try:
            found = self._opened(file, CUDA)
            if found.get_providers()[0] == CUDA:
                return found
            reason = "its libraries for CUDA cannot be loaded"
        except Exception as error:  # onnxruntime's exception types are private
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
        if self._named:
            raise EngineError(
                f"the voice cannot run on the GPU: {reason}", "set tts.device to cpu or auto"
            )
        self._provider = CPU
        logger.warning("the voice runs on the CPU, the GPU does not work: %s", reason)
        return self._opened(file, CPU)
