"""The input of the checks: mainly the settings. It also finds models that are not ready."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from voiceloop.catalog.cards import Kind, preset_models
from voiceloop.config import Config
from voiceloop.errors import VoiceloopError


@dataclass(frozen=True, slots=True)
class Case:
    """The input of all checks. It is sent to the process that runs the checks."""

    config: Config
    refused: tuple[str, ...] = ()
    """Message and hint of an error in the settings files; empty if there is no error. If there is
    one, `config` is made without these files."""
    file: Path | None = None
    """The file that --config names; None if the option is not given."""
    thorough: bool = False
    """Whether to check the checksums of models, too."""

    def absent(self, *kinds: Kind) -> list[VoiceloopError]:
        """Return an error for each configured model of these kinds that is not ready to be loaded.

        Nothing is downloaded or converted.
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
