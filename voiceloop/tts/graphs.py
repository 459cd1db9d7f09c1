"""Opening the graphs of voices for onnxruntime, on the CPU."""

from __future__ import annotations

import os
from pathlib import Path

import onnxruntime


def session(file: Path) -> onnxruntime.InferenceSession:
    """Raises what onnxruntime does for a file that is damaged."""
    options = onnxruntime.SessionOptions()
    # It does not look itself at what bounds threads; 0 leaves it to count the cores.
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS", "0"))
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Between two windows there is nothing to wait for on a core that others need.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(
        file, sess_options=options, providers=["CPUExecutionProvider"]
    )
