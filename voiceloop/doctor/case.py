"""What checks are given: the settings, and which of the models that they name are here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from voiceloop.catalog.cards import Kind, preset_models
from voiceloop.config import Config
from voiceloop.errors import VoiceloopError


@dataclass(frozen=True, slots=True)
class Case:
    """What is looked into. It travels to the process in which checks run."""

    config: Config
    refused: tuple[str, ...] = ()
    """What is wrong with the files of settings, and what to do about it; then `config` is without
    them."""
    file: Path | None = None
    """That of --config."""
    thorough: bool = False
    """Checksums are compared, too."""

    def absent(self, *kinds: Kind) -> list[VoiceloopError]:
        """Why models of these kinds that the settings name cannot be loaded as they lie here.

        Nothing is fetched or converted for that.
        """
        from voiceloop.catalog.names import NO_MODEL, find, named

        errors: list[VoiceloopError] = []
        of_preset = preset_models(self.config.preset)
        for key, (kind, name) in named(self.config).items():
            if kind not in kinds or name in NO_MODEL:
                continue
            try:
                find(name, kind, make=False)
            except VoiceloopError as error:
                if of_preset.get(key) == name:
                    error.hint = f"voiceloop models pull {self.config.preset}"
                errors.append(error)
        return errors
