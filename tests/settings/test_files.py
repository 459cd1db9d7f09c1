"""Files of settings: one that a command writes reads back as what it says, and of the user's own
file nothing is lost where a choice is kept in it."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from voiceloop.errors import ConfigError
from voiceloop.settings.config import KEYS, flatten, load_config
from voiceloop.settings.files import keep, settings_file
from voiceloop.settings.presets import PRESETS
from voiceloop.settings.schema import marks, members

pytestmark = pytest.mark.real

texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    st.sampled_from(["\x7f", "\x00", "a\r\nb", '"""', "\\", "#x", "é🙂", "none", "[llm]", "'"]),
)


def values(hint: Any) -> st.SearchStrategy[Any]:
    """What a setting of this type may be given, as the command line gives it."""
    least = max([0, *(mark.ge for mark in marks(hint) if mark.ge is not None)])
    most = min([least + 100, *(mark.le for mark in marks(hint) if mark.le is not None)])
    kinds: dict[Any, st.SearchStrategy[Any]] = {
        str: st.one_of(texts, st.just("")),
        int: st.integers(int(least), int(most)).map(str),
        float: st.floats(least, most).map(repr),
        NoneType: st.just("none"),
    }
    found: list[st.SearchStrategy[Any]] = []
    for one in members(hint):
        if get_origin(one) is Literal:
            found.append(st.sampled_from(get_args(one)))
        else:
            several = get_origin(one) is tuple
            found.append(st.lists(texts, max_size=3) if several else kinds[one])
    return st.one_of(found)


TABLES = {key for key, hint in KEYS.items() if get_origin(hint) is Mapping}
"""Settings that only files can give."""
flags = st.lists(st.sampled_from([key for key in KEYS if key not in TABLES]), unique=True).flatmap(
    lambda keys: st.fixed_dictionaries({key: values(KEYS[key]) for key in keys})
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("settings") / "mine.toml"


@given(flags)
@example({})
@example({"preset": "cpu"})
@example({"preset": "cpu", "tts.engine": "espeak", "asr.model": "tiny.en"})
@example({"asr.pad_s": "none", "llm.stop": ["a", "b"]})
def test_it_reads_back_as_what_it_says(file: Path, flags: dict[str, Any]) -> None:
    config, origins = load_config((), flags)
    text = settings_file(config, origins)
    file.write_bytes(text.encode())
    again, found = load_config([file])
    assert again == config
    assert {key for key in KEYS if found[key] == str(file)} == set(flags)
    # With what is commented out it still says the same, and nothing is left out.
    file.write_bytes(re.sub(r"^#(?! )", "", text, flags=re.MULTILINE).encode())
    again, found = load_config([file])
    assert again == config
    assert set(found.values()) == {str(file)}


def test_tables_of_servers_read_back_too(tmp_path: Path) -> None:
    first = tmp_path / "first.toml"
    first.write_text(
        "[mcp.servers.a-b]\ncommand = 'run'\nargs = ['-x', 'é\"']\ntimeout_s = 3\n"
        "env = { K = 'v\\' }\n['mcp'.servers.'c d']\nurl = 'http://x'\nconfirm = ['*']\n"
    )
    config, origins = load_config([first])
    assert config.mcp.servers["a-b"].env == {"K": "v\\"}
    second = tmp_path / "second.toml"
    second.write_bytes(settings_file(config, origins).encode())
    assert load_config([second])[0] == config


@pytest.mark.parametrize("preset", PRESETS)
def test_every_setting_has_its_comment(preset: str) -> None:
    config, origins = load_config((), {"preset": preset})
    text = settings_file(config, origins)
    assert max(map(len, text.splitlines())) <= 100
    for key in flatten(config):
        name = key.rpartition(".")[2]
        assert re.search(rf"^# .*\n#?{name} = ", text, re.MULTILINE), key


# ---- the user's own file

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
