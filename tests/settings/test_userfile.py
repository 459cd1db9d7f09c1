"""The user's own file of settings: what is kept in it, and that nothing of theirs is lost."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.errors import ConfigError
from voiceloop.settings.config import load_config
from voiceloop.settings.files import keep

pytestmark = pytest.mark.real

CHOICE = {
    "llm.engine": "openai",
    "llm.base_url": "http://127.0.0.1:11434/v1",
    "llm.target": "llama3.2",
}
OWN = """\
# mine, and dear to me
preset = 'cpu'   # fast

[llm]  # what thinks
target = "qwen2.5-1.5b-instruct"  # the better one
temperature = 0.70

# how it sounds
[tts]
voice = 'x'
"""


def test_what_the_user_wrote_stands(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(OWN)
    keep(CHOICE, file)
    assert (
        file.read_text()
        == """\
# mine, and dear to me
preset = 'cpu'   # fast

[llm]  # what thinks
target = "llama3.2" # was "qwen2.5-1.5b-instruct"; the better one
temperature = 0.70
engine = "openai"
base_url = "http://127.0.0.1:11434/v1"

# how it sounds
[tts]
voice = 'x'
"""
    )
    settings, _ = load_config([file])
    assert (settings.llm.engine, settings.llm.target) == ("openai", "llama3.2")
    before = file.stat().st_mtime_ns
    keep(CHOICE, file)
    assert file.stat().st_mtime_ns == before


def test_a_link_stays_one_and_who_may_read_it_too(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles.toml", tmp_path / "config.toml"
    real.write_text("threads = 2\n")
    real.chmod(0o600)
    link.symlink_to(real)
    keep(CHOICE, link)
    assert link.is_symlink() and real.stat().st_mode & 0o777 == 0o600
    assert tomllib.loads(real.read_text())["threads"] == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[asr]\nmodel = 'b'",
        "llm.target = 'a'\nllm.temperature = 0.1\n[asr]\nmodel='b'\n",
        "llm = { target = 'a', temperature = 0.5 }\n",
        "[llm]\r\ntarget = 'b'\r\n",
        "[llm]\nstop = ['a',\n# why\n'b']\n\n\n# the end\n[asr]\n",
        "[llm]\ntarget = '''two\nlines'''\n",
        "[llm]\n# target = 'x'\n",
        "[tts]\nvoice = 'ü'\n[llm]\n",
    ],
    ids=repr,
)
def test_however_it_is_written_only_the_choice_changes(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(text.encode())
    keep(CHOICE, file)
    expected = tomllib.loads(text)
    expected["llm"] = expected.get("llm", {}) | {
        key.removeprefix("llm."): value for key, value in CHOICE.items()
    }
    assert tomllib.loads(file.read_bytes().decode()) == expected
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert all(comment in file.read_text().splitlines() for comment in comments)


@pytest.mark.parametrize("text", ["llm = 3\n", "[[llm]]\ntarget = 'a'\n", "[llm", "\x00"])
def test_where_it_cannot_be_added_nothing_is_touched(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        keep(CHOICE, file)
    assert "\n" not in caught.value.message
    assert file.read_text() == text and len(list(tmp_path.iterdir())) == 1


def test_a_folder_that_may_not_be_written_is_one_line(unprivileged: Path) -> None:
    file = unprivileged / "config.toml"
    file.write_text("threads = 2\n")
    os.chmod(unprivileged, 0o500)
    with pytest.raises(ConfigError, match="cannot be written: Permission denied"):
        keep(CHOICE, file)
    os.chmod(unprivileged, 0o700)
    assert file.read_text() == "threads = 2\n"


LINES = ["threads = 1", "# why", "", "[asr]", "[tts]", "[llm]", "target = 'a'", "engine = 'b'"]


@given(lines=st.lists(st.sampled_from(LINES), max_size=8), value=st.text(max_size=20))
def test_whatever_is_there_it_is_added_or_refused(
    lines: list[str], value: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("own") / "config.toml"
    file.write_text("\n".join(lines))
    try:
        keep({"llm.target": value}, file)
    except ConfigError:
        assert file.read_text() == "\n".join(lines)
        return
    assert tomllib.loads(file.read_bytes().decode())["llm"]["target"] == value
    assert file.read_text().count("# why") == lines.count("# why")
