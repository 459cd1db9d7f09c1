"""voiceloop: a real-time voice assistant that runs on one's own machine."""

import os

__version__ = "0.1.0"

# From 1.29 on ONNX Runtime reports its use to its makers unless it is told not to beforehand.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
