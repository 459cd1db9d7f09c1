"""Checks of files and ports: settings, folders, models, and the port of the server."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Set
from pathlib import Path

from voiceloop.calibration.keeping import cache_folder
from voiceloop.catalog.cards import size
from voiceloop.catalog.names import named
from voiceloop.catalog.store import ModelStore
from voiceloop.config import config_files, user_file
from voiceloop.doctor.case import Case
from voiceloop.doctor.findings import Finding, Mark
from voiceloop.errors import DeviceError
from voiceloop.server.port import Binding, check_port

PROBE_BYTES = 1 << 20
"""Number of bytes that are written to a folder as a test. The file has no name and is deleted at
once."""


def configuration(case: Case) -> Iterator[Finding]:
    """Report whether the settings files can be read, and which ones apply."""
    if case.refused:
        message, hint = case.refused
        yield Finding("configuration", "broken", message, hint)
        return
    files = ", ".join(str(file) for file in config_files(case.file))
    text = files or f"no file of settings; {user_file()} would be read"
    yield Finding("configuration", "ok", f"{text}; preset {case.config.preset}")


def disk(case: Case) -> Iterator[Finding]:
    """Report whether the folders of models and calibrations are writable, and their free space."""
    del case
    for what, folder in (("models", ModelStore().root), ("cache", cache_folder())):
        yield of_folder(what, folder)


def of_folder(what: str, folder: Path) -> Finding:
    """Return the finding for `folder`. `what` names its contents, e.g. `models`. If the folder does
    not exist, its nearest parent that exists is tested."""
    try:
        there = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
        free = shutil.disk_usage(there).free
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(bytes(PROBE_BYTES))
    except OSError as error:
        cure = "check its permissions and its disk"
        if what == "models":
            cure += ", or name another folder in VOICELOOP_MODELS"
        why = f"nothing can be written to {folder}: {error.strerror}"
        return Finding(f"{what} folder", "warning", why, cure)
    return Finding(f"{what} folder", "ok", f"{folder}, {size(free)} free")


def models(case: Case) -> Iterator[Finding | None]:
    """Report whether the downloaded models are undamaged. The checks of the stages report missing
    ones."""
    used = {name for _, name in named(case.config).values()}
    yield from of_store(ModelStore(), used, thorough=case.thorough)


def of_store(store: ModelStore, used: Set[str], *, thorough: bool) -> Iterator[Finding | None]:
    """Check the models of `store`. If a damaged model is in `used`, the finding is `broken`, else a
    warning. With `thorough`, checksums are compared; otherwise only sizes."""
    here = store.models()
    damaged = [f"{folder} (its record cannot be read)" for folder in store.unreadable()]
    mark: Mark = "warning"
    for model in here:
        yield None  # says that the check is still at work: checksums take long
        if model.damaged() if thorough else not store.find(model.name, model.origin):
            damaged.append(model.name)
            mark = "broken" if model.name in used else mark
    if damaged:
        text = f"damaged in {store.root}: {', '.join(damaged)}"
        cure = "pull them again with voiceloop models pull, or remove them with models rm"
        yield Finding("models", mark, text, cure)
    else:
        state = "as they were pulled" if thorough else "whole by their sizes"
        total = size(sum(model.bytes for model in here))
        text = f"{len(here)} pulled, {total}, {state}" if here else "none pulled"
        yield Finding("models", "ok", f"{text}; the starter's come with voiceloop")


def port(case: Case) -> Iterator[Finding]:
    """Report whether the server could listen on its default port."""
    del case
    yield of_port(Binding())


def of_port(binding: Binding) -> Finding:
    """Return the finding for the port of `binding`."""
    try:
        check_port(binding)
    except DeviceError as error:
        return Finding("port", "warning", error.message, error.hint)
    return Finding("port", "ok", f"{binding.port} is free for voiceloop serve")
