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

import voiceloop

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[1]


PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a program, as a user whose home is `cwd` and without the paths of this environment;
    return what it prints."""
    left_out = ("PYTHON", "VIRTUAL_ENV", "XDG_", "VOICELOOP_")
    environ = {key: value for key, value in os.environ.items() if not key.startswith(left_out)}
    environ |= {"HOME": str(cwd), "USERPROFILE": str(cwd)}
    done = subprocess.run(command, cwd=cwd, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The wheels of this checkout: voiceloop, and the languages' packs."""
    folder = tmp_path_factory.mktemp("wheels")
    build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    run(*PIP, *build, ROOT, *sorted(ROOT.glob("packs/lang-*")), cwd=folder)
    return sorted(folder.glob("voiceloop*.whl"))


def installed(wheels: list[Path], folder: Path) -> tuple[Path, Path]:
    """The folders of programs and of packages of a new environment, with the wheels in it.

    It shares the packages that voiceloop needs with the environment of the tests, by a path that
    comes after its own and does not lead to the checkout: a path file within such a path is not
    read, so an editable install stays out.
    """
    venv.create(folder / "venv", with_pip=False)
    home = {"base": str(folder / "venv"), "platbase": str(folder / "venv")}
    scripts, packages = (Path(sysconfig.get_path(key, "venv", home)) for key in PLACES)
    run(*PIP, "--python", scripts / "python", "install", "--no-deps", *wheels, cwd=folder)
    shared = sysconfig.get_path("purelib")
    (packages / "shared.pth").write_text(f"{shared}\n", encoding="utf-8")
    return scripts, packages


PLACES = ("scripts", "purelib")


@pytest.fixture(scope="module")
def scripts(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment that all tests share."""
    return installed(wheels, tmp_path_factory.mktemp("shared"))[0]


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


def test_a_script_of_the_docs_runs_in_an_empty_folder(scripts: Path, tmp_path: Path) -> None:
    program = "from voiceloop.bundled import bundled; print(bundled('models/starter/demo.wav'))"
    demo = run(scripts / "python", "-c", program, cwd=tmp_path).strip()
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    script = text.partition("```python\n")[2].partition("```")[0]
    (tmp_path / "talk.py").write_text(script, encoding="utf-8")
    printed = run(scripts / "python", "talk.py", demo, cwd=tmp_path)
    assert printed.startswith("Why is the sky blue? -> ")


def test_the_installed_program_tells_what_it_is_and_where_its_files_are(
    scripts: Path, tmp_path: Path
) -> None:
    program = scripts / "voiceloop"
    assert run(program, "--version", cwd=tmp_path) == f"voiceloop {voiceloop.__version__}\n"
    lines = run(program, "doctor", "--json", cwd=tmp_path).splitlines()
    told = {found["check"]: found for found in map(json.loads, lines)}
    assert not [check for check, found in told.items() if found["mark"] == "broken"]
    assert str(scripts.parent) in told["python"]["text"]
    assert Path("~/.config/voiceloop") / "config.toml" == settings_in(told["configuration"]["text"])
    for what, folder in (("models", "models"), ("cache", "calibrations")):
        place = told[f"{what} folder"]["text"].split(", ")[0]
        assert Path(place) == Path("~/.cache/voiceloop") / folder


def settings_in(text: str) -> Path:
    """The file that would be read, as the doctor tells it."""
    return Path(text.partition("; ")[2].partition(" would be read")[0])


def test_the_packs_of_languages_are_found(scripts: Path, tmp_path: Path) -> None:
    program = "from voiceloop.languages import language; print(language('de-AT').done)"
    assert run(scripts / "python", "-c", program, cwd=tmp_path) == "Erledigt.\n"


def test_an_extra_is_asked_for_as_a_wheel_has_it(scripts: Path, tmp_path: Path) -> None:
    program = "from voiceloop.errors import MissingExtra; print(MissingExtra('x', 'coqui').hint)"
    hint = run(scripts / "python", "-c", program, cwd=tmp_path)
    assert f"voiceloop-{voiceloop.__version__}-py3-none-any.whl[coqui]" in hint


def test_what_was_installed_can_be_removed_and_only_what_is_told_stays(
    wheels: list[Path], tmp_path: Path
) -> None:
    """docs/install.md tells which folders of the user's there may be."""
    scripts, packages = installed(wheels, tmp_path)
    home = tmp_path / "home"
    home.mkdir()
    run(scripts / "voiceloop", "say", "Hello.", "--out", "hello.wav", cwd=home)
    names = [wheel.name.partition("-")[0] for wheel in wheels]
    run(*PIP, "--python", scripts / "python", "uninstall", "--yes", *names, cwd=tmp_path)
    assert not [path for path in packages.iterdir() if path.name.startswith("voiceloop")]
    assert not (scripts / "voiceloop").exists()
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    for made in home.rglob("voiceloop"):
        assert f"~/{made.relative_to(home).as_posix()}" in text
    assert [path.name for path in home.iterdir() if path.name[0] != "."] == ["hello.wav"]
