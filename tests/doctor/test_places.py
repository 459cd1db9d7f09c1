"""What folders, models, settings and ports come to, as they are on a real disk."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from voiceloop.catalog.store import RECORD, ModelStore
from voiceloop.doctor.examine import Case
from voiceloop.doctor.findings import Finding
from voiceloop.doctor.machine import PROBE_BYTES, configuration, of_folder, of_port, of_store
from voiceloop.server.port import Binding
from voiceloop.settings.config import Config

pytestmark = pytest.mark.real


def test_a_folder_that_is_there_or_can_be_made_is_fine_and_left_as_it_was(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "not" / "yet"):
        found = of_folder("models", folder)
        assert (found.check, found.mark, found.cure) == ("models folder", "ok", "")
        assert found.text.startswith(f"{folder}, ") and found.text.endswith(" free")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_may_not_be_written_is_a_warning(unprivileged: Path) -> None:
    (unprivileged / "models").mkdir(mode=0o500)
    for folder in (unprivileged / "models", unprivileged / "models" / "below"):
        found = of_folder("models", folder)
        assert found.mark == "warning"
        assert found.text == f"nothing can be written to {folder}: Permission denied"
        assert "VOICELOOP_MODELS" in found.cure
        assert "VOICELOOP_MODELS" not in of_folder("cache", folder).cure


def test_a_full_disk_is_a_warning(small_disk: Path) -> None:
    assert PROBE_BYTES > shutil.disk_usage(small_disk).free
    found = of_folder("models", small_disk)
    assert found.mark == "warning" and found.text.endswith("No space left on device")


# Models


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    """One with two models."""
    store = ModelStore(tmp_path / "models")
    for name in ("a", "b"):
        with store.workshop(name, "hub") as shop:
            made = shop / "made"
            made.mkdir()
            (made / "weights.bin").write_bytes(b"x" * 1000)
            store.put(made, name, "hub", {"repo": "x/y"})
    return store


def test_whole_models_are_counted(store: ModelStore) -> None:
    found = of_store(store, {"a"})
    assert found.mark == "ok" and found.text.startswith("2 pulled, 2.0 kB, ")
    assert of_store(ModelStore(store.root / "none"), set()).text.startswith("none pulled")


@pytest.mark.parametrize(("used", "mark"), [("a", "broken"), ("b", "warning")])
def test_a_file_that_was_cut_is_found(store: ModelStore, used: str, mark: str) -> None:
    os.truncate(store.root / "a@hub" / "weights.bin", 999)
    found = of_store(store, {used})
    assert found.mark == mark
    assert found.text.endswith(": a") and "voiceloop models pull" in found.cure


def test_a_record_that_cannot_be_read_is_found(store: ModelStore) -> None:
    (store.root / "a@hub" / RECORD).write_text("{")
    found = of_store(store, {"b"})
    assert found.mark == "warning" and "a@hub (its record cannot be read)" in found.text


# Settings


def test_the_files_that_apply_are_named(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").touch()
    (found,) = configuration(Case(Config(), file=tmp_path / "mine.toml"))
    assert found.mark == "ok" and str(tmp_path / "mine.toml") in found.text


# The port


def test_a_port_that_is_taken_is_a_warning_and_a_free_one_is_fine() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        binding = Binding("127.0.0.1", server.getsockname()[1])
        taken = of_port(binding)
    assert taken.mark == "warning" and str(binding.port) in taken.text and "--port" in taken.cure
    free = of_port(binding)
    assert free == Finding("port", "ok", f"{binding.port} is free for voiceloop serve")
