"""All checks, in the order in which they run."""

from __future__ import annotations

from collections.abc import Mapping

from voiceloop.doctor import machine, places, sound, stages
from voiceloop.doctor.examine import Check

CHECKS: Mapping[str, Check] = {
    "python": machine.python,
    "configuration": places.configuration,
    "processor": machine.processor,
    "memory": machine.memory,
    "graphics": machine.graphics,
    "disk": places.disk,
    "models": places.models,
    "port": places.port,
    "sound": sound.sound,
    "voice detector": stages.voice_detector,
    "recogniser": stages.recogniser,
    "end of turn": stages.end_of_turn,
    "language model": stages.language_model,
    "synthesizer": stages.synthesizer,
}
"""The checks by name. The name is shown while a check runs, and in its finding if it fails."""
