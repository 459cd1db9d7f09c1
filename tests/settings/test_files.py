"""A file of settings that a command writes: it says what is, and reads back as that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from voiceloop.settings.config import KEYS, flatten, load_config
from voiceloop.settings.files import settings_file
from voiceloop.settings.presets import PRESETS
from voiceloop.settings.schema import marks, members

pytestmark = pytest.mark.pure

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
