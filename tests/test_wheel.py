"""The wheel alone answers a question: nothing of the checkout is needed to run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.models

ROOT = Path(__file__).resolve().parents[1]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a program without the paths of this environment; return what it prints."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a new environment that holds the wheel.

    It shares the packages that voiceloop needs with the environment of the tests, by a path that
    comes after its own and does not lead to the checkout: a path file within such a path is not
    read, so an editable install stays out.
    """
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    run(*pip, *build, cwd=folder)
    (wheel,) = folder.glob("voiceloop-*.whl")
    venv.create(folder / "venv", with_pip=False)
    home = {"base": str(folder / "venv"), "platbase": str(folder / "venv")}
    paths = {key: sysconfig.get_path(key, "venv", home) for key in ("purelib", "scripts")}
    python = Path(paths["scripts"]) / "python"
    run(*pip, "--python", python, "install", "--no-deps", wheel, cwd=folder)
    shared = sysconfig.get_path("purelib")
    (Path(paths["purelib"]) / "shared.pth").write_text(f"{shared}\n", encoding="utf-8")
    return Path(paths["scripts"])


def test_the_package_comes_from_the_wheel(scripts: Path, tmp_path: Path) -> None:
    program = "import voiceloop, voiceloop.bundled as b; print(b.bundled('models/starter'))"
    found = Path(run(scripts / "python", "-c", program, cwd=tmp_path).strip())
    assert found.is_relative_to(scripts.parent)
    assert not found.is_relative_to(ROOT)


def test_the_page_of_the_browser_is_in_it(scripts: Path, tmp_path: Path) -> None:
    program = "from voiceloop.bundled import bundled; print(bundled('web'))"
    found = Path(run(scripts / "python", "-c", program, cwd=tmp_path).strip())
    shipped = {path.relative_to(found) for path in found.rglob("*") if path.is_file()}
    web = ROOT / "web"
    assert shipped == {path.relative_to(web) for path in web.rglob("*") if path.is_file()}


def test_the_installed_program_answers_a_spoken_question(scripts: Path, tmp_path: Path) -> None:
    demo = run(
        scripts / "python",
        "-c",
        "from voiceloop.bundled import bundled; print(bundled('models/starter/demo.wav'))",
        cwd=tmp_path,
    ).strip()
    ask = [scripts / "voiceloop", "ask", demo, "--out", "reply.wav", "--pace", "max", "--json"]
    (turn, *_) = run(*ask, cwd=tmp_path).splitlines()
    answer = json.loads(turn)
    assert answer["outcome"] == "done"
    assert answer["transcript"]
    assert answer["reply"]
    assert (tmp_path / "reply.wav").stat().st_size > 10_000
