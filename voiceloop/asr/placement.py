"""Where a recogniser of CTranslate2 runs. This module knows no models."""

from __future__ import annotations

import ctranslate2


def whisper_device(setting: str) -> str:
    """`cpu` or `cuda`; for `auto` the GPU where there is one, whether or not it works."""
    if setting != "auto":
        return setting
    return "cuda" if ctranslate2.get_cuda_device_count() else "cpu"


def whisper_type(setting: str, device: str) -> str:
    """How weights are kept on that device."""
    if setting != "auto":
        return setting
    return "int8" if device == "cpu" else "float16"
