"""Libraries that are found by their names, wherever they lie; small ones stand in for cuBLAS."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from voiceloop.asr.whisper_model import LIBRARIES, load_cublas

pytestmark = pytest.mark.real

LATER = """
import ctypes, sys
from pathlib import Path
from voiceloop.asr.whisper_model import LIBRARIES, load_cublas

folder = Path(sys.argv[1])
found = load_cublas(lambda: [folder / "nothing", folder])
for name in LIBRARIES:
    try:
        print(found, ctypes.CDLL(name).voiceloop_answer())
    except OSError:
        print(found, "none")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with libraries of those names, each of which answers with its number."""
    if (compiler := shutil.which("gcc") or shutil.which("cc")) is None:
        pytest.skip("there is no C compiler")
    for number, name in enumerate(LIBRARIES):
        source = tmp_path / f"{number}.c"
        source.write_text(f"int voiceloop_answer(void) {{ return {number}; }}")
        made = ["-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", str(tmp_path / name), str(source)]
        subprocess.run([compiler, *made], check=True)
    return tmp_path


def later(folder: Path) -> list[str]:
    """What is found by name, once they have been loaded; in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", LATER, str(folder)], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.skipif(sys.platform != "linux", reason="a loader that knows libraries by their names")
def test_what_was_loaded_from_a_folder_is_found_by_its_name(folder: Path) -> None:
    assert later(folder) == ["True 0", "True 1"]


def test_one_that_is_no_library_is_as_good_as_none(tmp_path: Path) -> None:
    for name in LIBRARIES:
        (tmp_path / name).write_text("nothing")

    def load(place: str) -> object:
        if not place.startswith(str(tmp_path)):
            raise OSError(place)  # the loader finds none
        return ctypes.CDLL(place)

    assert not load_cublas(lambda: [tmp_path], load)


def test_folders_go_first_and_the_loader_is_asked_last() -> None:
    asked: list[str] = []

    def load(place: str) -> object:
        asked.append(place)
        if "/" in place:
            raise OSError(place)
        return place

    assert load_cublas(lambda: [Path("/a"), Path("/b")], load)
    assert asked[:3] == [f"/a/{LIBRARIES[0]}", f"/b/{LIBRARIES[0]}", LIBRARIES[0]]
    asked.clear()
    assert load_cublas(list, load) and asked == [*LIBRARIES]
