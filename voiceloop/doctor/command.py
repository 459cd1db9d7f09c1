"""The command `voiceloop doctor`: its options, and the list of private texts that its output hides.

Heavy modules are imported only when the command runs, and the checks run in another process.
"""

from __future__ import annotations

import getpass
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from voiceloop.assembly.choosing import Choosing, settle, this_machine
from voiceloop.settings.config import Config, given_in_settings
from voiceloop.settings.presets import Preset


class Doctor(Choosing, frozen=True, kw_only=True):
    """Try what commonly breaks, name the cure, and suggest a preset.

    It tries the models that `talk` would take.
    """

    uses = ()
    examples = ("voiceloop doctor", "voiceloop doctor --preset laptop --json")
    docs = "docs/install.md"
    looks_at_files: ClassVar[bool] = True

    json: bool = False
    """Print one JSON object on one line for each finding."""


def doctor(command: Doctor) -> int:
    """Run `voiceloop doctor`. Return the exit status: 1 if something is broken."""
    from voiceloop.catalog.pulled import way_to
    from voiceloop.catalog.store import ModelStore
    from voiceloop.doctor.checks import CHECKS
    from voiceloop.doctor.examine import Case, examine, printer
    from voiceloop.doctor.findings import Finding, Veil, advice

    named = "preset" in given_in_settings(command.settings, command.origins)
    command, _ = settle(command, looks=False, ask=None)
    case = Case(command.settings, command.refused, command.config)
    veil = Veil(os.environ, private(command.settings))
    findings: list[Finding] = []
    with (
        printer(sys.stdout, as_json=command.json) as show,
        closing(examine(case, CHECKS)) as results,
    ):
        for one in results:
            if isinstance(one, Finding):
                findings.append(one)
                show(veil.over_all(one))
            else:
                show(one)
        # What the checks found, since looking at a GPU may end a process.
        gpu = sum(int(one.figures.get("bytes", 0)) for one in findings if one.check == "graphics")
        machine, configured = replace(this_machine(), gpu=lambda: gpu), command.settings.preset

        def way(suits: Preset) -> str:
            return way_to(suits, ModelStore(), chooses=not named and suits.better(configured))

        for one in advice(findings, configured, machine, way):
            show(veil.over_all(one))
    return 1 if any(one.mark == "broken" for one in findings) else 0


def private(config: Config) -> Mapping[str, str]:
    """Map private texts of the user, the machine and the settings to the texts that are shown
    instead, e.g. the home folder to `~`."""
    host = socket.gethostname()
    found = {host: "HOST", host.partition(".")[0]: "HOST"}
    with suppress(OSError, KeyError):  # no entry for the user, as in some containers
        found[getpass.getuser()] = "USER"
    with suppress(ValueError):  # not a valid address
        parts = urlsplit(config.llm.base_url)
        found |= {parts.netloc: "llm.base_url", parts.hostname or "": "llm.base_url"}
    with suppress(RuntimeError):  # the user has no home folder
        home = Path.home()
        found |= {str(home): "~", str(home.resolve()): "~"}
    return found
