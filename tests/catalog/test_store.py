"""The store: a model is there as a whole or not at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.catalog.conftest import put
from voiceloop.catalog.store import RECORD, ModelStore, make_room
from voiceloop.errors import VoiceloopError

pytestmark = pytest.mark.real


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "models")


@pytest.mark.parametrize(
    ("environ", "where"),
    [
        ({"VOICELOOP_MODELS": "/m"}, "/m"),
        ({"VOICELOOP_MODELS": "/m", "XDG_CACHE_HOME": "/c"}, "/m"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/voiceloop/models"),
        ({}, str(Path.home() / ".cache/voiceloop/models")),
    ],
)
def test_where_it_is(environ: dict[str, str], where: str) -> None:
    assert ModelStore(environ=environ).root == Path(where)


def test_what_is_put_is_found(store: ModelStore) -> None:
    made = put(store, "org/a", "hub")
    assert store.find("org/a") == store.find("org/a", "hub") == made
    assert store.models() == [made]
    assert made.bytes == 7
    assert made.damaged() == []
    assert store.find("org/a", "packages") is None
    assert store.find("org/b") is None


def test_who_may_enter_the_store_may_read_its_files(store: ModelStore) -> None:
    with store.workshop("a", "hub") as shop:
        (shop / "made").mkdir()
        (shop / "made").chmod(0o755)
        (shop / "made" / "model.bin").touch(mode=0o600)
        made = store.put(shop / "made", "a", "hub", {})
    assert (made.folder / "model.bin").stat().st_mode & 0o777 == 0o644


def test_what_was_never_finished_is_not_found(store: ModelStore) -> None:
    with pytest.raises(RuntimeError), store.workshop("a", "hub") as shop:
        (shop / "model.bin").write_bytes(b"half")
        raise RuntimeError
    assert store.find("a") is None
    assert store.models() == []
    with store.workshop("a", "hub") as shop:  # and what had come is kept
        assert (shop / "model.bin").read_bytes() == b"half"


@pytest.mark.parametrize("record", ["", "{", "[]", '{"files": {}}', '{"files": {"a": {"b": 1}}}'])
def test_a_record_that_is_none_makes_no_model(store: ModelStore, record: str) -> None:
    folder = put(store, "org/a", "hub").folder
    (folder / RECORD).write_text(record)
    assert store.find("org/a") is None
    assert store.models() == []


def test_a_file_that_is_missing_or_cut_makes_no_model(store: ModelStore) -> None:
    made = put(store, "org/a", "hub")
    (made.folder / "model.bin").write_bytes(b"weigh")
    assert store.find("org/a") is None
    (made.folder / "model.bin").unlink()
    assert store.find("org/a") is None
    assert made.damaged() == ["model.bin"]


def test_what_is_removed_is_gone(store: ModelStore) -> None:
    store.remove(put(store, "org/a", "hub"))
    assert store.models() == []
    assert [path.name for path in store.root.iterdir()] == [".partial"]
    assert list((store.root / ".partial").iterdir()) == []


def test_a_folder_that_may_not_be_written_is_one_line(unprivileged: Path) -> None:
    (unprivileged / "models").mkdir(mode=0o500)
    with (
        pytest.raises(VoiceloopError, match="cannot be written: Permission denied"),
        ModelStore(unprivileged / "models").workshop("a", "hub"),
    ):
        pass


def test_room_is_asked_of_the_disk_even_where_there_is_no_folder_yet(tmp_path: Path) -> None:
    make_room(tmp_path / "not" / "there", 1)
    with pytest.raises(VoiceloopError, match=r"B free, and 1000000000\.0 GB are needed"):
        make_room(tmp_path / "not" / "there", 10**18)


WITHOUT_LOCKS = """
import sys
sys.modules["fcntl"] = None  # as on Windows
from pathlib import Path
from voiceloop.catalog.store import ModelStore

store = ModelStore(Path(sys.argv[1]))
with store.workshop("a", "hub") as shop:
    (shop / "made").mkdir()
    (shop / "made" / "model.bin").write_bytes(b"weights")
    store.put(shop / "made", "a", "hub", {})
assert not list(store.root.glob(".partial/*"))
assert store.find("a").damaged() == []
"""


def test_a_system_without_locks_has_a_store_all_the_same(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_LOCKS, str(tmp_path)], check=True)
