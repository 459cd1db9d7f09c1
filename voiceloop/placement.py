"""Where a model of torch runs: the device that a setting names, or the best that there is.

This module does not know what runs there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from voiceloop.errors import EngineError


def torch_device(
    setting: str, name: str, auto: Sequence[str] = ("cuda", "mps", "cpu")
) -> torch.device:
    """The device that `setting` names, or for `auto` the first of those that is there.

    Raises EngineError for a device that is not there.
    """
    there = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    return torch.device(chosen_device(setting, name, auto, there))


def chosen_device(setting: str, name: str, auto: Sequence[str], there: Mapping[str, bool]) -> str:
    """`name`, or for `auto` the first of those that is `there`.

    Raises EngineError for a device that is not there.
    """
    if name == "auto":
        return next(device for device in auto if there[device])
    if not there[name]:
        raise EngineError(f"torch finds no {name} device here", f"set {setting} to cpu or auto")
    return name
