"""Settings: which layer wins, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from tools.configuration import page
from voiceloop.errors import ConfigError
from voiceloop.settings.config import (
    KEYS,
    Config,
    McpServer,
    assembled,
    flatten,
    load_config,
)
from voiceloop.settings.files import GUARDED, config_files
from voiceloop.settings.presets import PRESETS
from voiceloop.settings.schema import Texts, marks

pytestmark = pytest.mark.pure


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# --- which layer wins ---------------------------------------------------------------------------


def test_a_flag_beats_a_file_beats_an_earlier_file_beats_the_preset(tmp_path: Path) -> None:
    user = write(
        tmp_path / "user.toml",
        'preset = "small"\n[asr]\nbeam_size = 2\nlanguage = "de"\n[llm]\ntarget = "mine"\n',
    )
    here = write(tmp_path / "here.toml", '[asr]\nbeam_size = 3\nlanguage = "fr"\n')
    config, origins = load_config([user, here], {"asr.beam_size": "4"})
    assert (config.asr.beam_size, origins["asr.beam_size"]) == (4, "flag")
    assert (config.asr.language, origins["asr.language"]) == ("fr", str(here))
    assert (config.llm.target, origins["llm.target"]) == ("mine", str(user))
    assert (config.preset, origins["preset"]) == ("small", str(user))
    assert config.asr.model == PRESETS["small"]["asr.model"]
    assert origins["asr.model"] == "preset small"
    assert origins["threads"] == "default"


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_sets_what_it_lists_and_nothing_else(name: str) -> None:
    config, origins = load_config(flags={"preset": name})
    expected = flatten(Config()) | dict(PRESETS[name]) | {"preset": name}
    assert flatten(config) == expected
    assert {key for key, origin in origins.items() if origin == f"preset {name}"} == set(
        PRESETS[name]
    )


def test_another_engine_than_a_preset_means_has_models_of_its_own() -> None:
    config, origins = load_config(flags={"preset": "cpu", "asr.engine": "own"})
    assert config.asr.model == "starter" and origins["asr.model"] == "default"
    assert config.llm.target == PRESETS["cpu"]["llm.target"]
    named, _ = load_config(
        flags={"preset": "cpu", "asr.engine": "own", "asr.model": "mine", "llm.engine": "other"}
    )
    assert (named.asr.model, named.llm.target) == ("mine", "starter")
    same, _ = load_config(flags={"preset": "cpu", "asr.engine": "whisper"})
    assert same.asr.model == PRESETS["cpu"]["asr.model"]


def test_every_preset_can_be_chosen_and_every_choice_is_a_preset() -> None:
    assert set(get_args(KEYS["preset"])) == set(PRESETS)


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "threads": st.integers(0, 256),
    "asr.model": st.text(),
    "asr.device": st.sampled_from(["auto", "cpu", "cuda"]),
    "asr.pad_s": st.floats(0, 30),
    "llm.num_speculative_tokens": st.one_of(st.just("auto"), st.integers(0, 50)),
    "llm.temperature": st.floats(0, 10),
    "turns.threshold": st.floats(0, 1),
}


@given(layers=st.lists(st.fixed_dictionaries({}, optional=VALUES), max_size=2))
def test_the_last_layer_that_gives_a_key_wins(layers: list[dict[str, object]]) -> None:
    flags: dict[str, str] = {}
    for layer in layers:
        flags |= {key: str(value) for key, value in layer.items()}
    config, origins = load_config(flags=flags)
    merged = flatten(Config())
    for layer in layers:
        merged |= layer
    assert flatten(config) == merged
    assert {key for key, origin in origins.items() if origin == "flag"} == set(flags)


def test_none_is_written_as_a_word_in_files_and_flags_alike(tmp_path: Path) -> None:
    short = write(tmp_path / "short.toml", "[asr]\npad_s = 2")
    none = write(tmp_path / "none.toml", '[asr]\npad_s = "none"')
    assert load_config([short])[0].asr.pad_s == 2.0
    assert load_config([short, none])[0].asr.pad_s is None
    for word in ("none", "None"):  # help shows it in the second way
        assert load_config([short], {"asr.pad_s": word})[0].asr.pad_s is None


def test_the_files_that_apply_are_the_users_then_the_folders_then_the_named_one(
    tmp_path: Path,
) -> None:
    user = write(tmp_path / "xdg" / "voiceloop" / "config.toml", "")
    here = write(tmp_path / "here" / "voiceloop.toml", "")
    named = tmp_path / "named.toml"
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert config_files(named, environ=environ, folder=here.parent) == [user, here, named]
    assert config_files(environ=environ, folder=tmp_path) == [user]


HARMLESS = {"asr.language", "llm.stop", "place", "timezone"}
"""Free text that names neither code nor a file, and opens nothing."""


def test_free_text_is_guarded_or_known_to_be_harmless() -> None:
    free = {key for key, hint in KEYS.items() if hint in (str, Texts)}
    assert free - GUARDED == HARMLESS
    assert {key for key in KEYS if key.startswith(("server.", "mcp.", "wake."))} <= GUARDED


@pytest.mark.parametrize("key", sorted(GUARDED))
def test_a_file_that_is_found_may_not_set_what_is_guarded_unless_it_is_named(
    key: str, tmp_path: Path
) -> None:
    section, _, name = key.partition(".")
    value, read = "'mine'", "mine"
    limits = {f"llm.{name}" for name in ("best_of", "max_new_tokens", "max_thought_tokens")}
    numbers = {"wake.open_s", "turns.max_guesses", *limits}
    if (section == "server" and name != "store") or key in numbers:
        value, read = 7, 7
    elif key in ("preset", "llm.skills"):
        value, read = {"preset": ("'cpu'", "cpu"), "llm.skills": ("'none'", "none")}[key]
    elif key == "mcp.serve":
        value, read = "['mine']", ("mine",)
    elif key == "mcp.servers":
        value, read = "{mine = {command = 'run'}}", {"mine": McpServer(command="run")}
    line = f"[{section}]\n{name} = {value}\n" if name else f"{key} = {value}\n"
    here = write(tmp_path / "voiceloop.toml", f"threads = 3\n{line}")
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "nothing")}
    with pytest.raises(ConfigError, match=rf"voiceloop\.toml sets {key}, which") as caught:
        config_files(environ=environ, folder=tmp_path)
    assert caught.value.hint.endswith(f"--config {here}")
    with pytest.raises(ConfigError, match=f"sets {key}"):  # another file does not excuse it
        config_files(write(tmp_path / "other.toml", ""), environ=environ, folder=tmp_path)
    (tmp_path / "link.toml").symlink_to(here)
    for named in (here, tmp_path / "link.toml"):
        files = config_files(named, environ=environ, folder=tmp_path)
        assert files == [named]
        assert flatten(load_config(files)[0])[key] == read


def test_a_file_that_is_found_may_set_the_rest(tmp_path: Path) -> None:
    text = 'place = "Lisbon"\n[asr]\nlanguage = "de"\n[turns]\nhangover_ms = 400\n'
    here = write(tmp_path / "voiceloop.toml", text)
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "nothing")}
    assert config_files(environ=environ, folder=tmp_path) == [here]


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[asr]\nmodle = 'x'", "asr.modle is not a setting", "'asr.model'"),
        ("model = 'x'", "model is not a setting", "'tts.model'"),
        ("[llm]\nmodel = 'x'", "llm.model is not a setting", "'llm.target'"),
        ("zzzzzz = 1", "zzzzzz is not a setting", "voiceloop config"),
        ("asr = 3", "asr is a section", "[asr]"),
        (
            "preset = 'bset'",
            "preset must be 'starter' or 'mini' or 'cpu' or 'laptop' or 'desktop' or 'small' or "
            "'best', not 'bset'",
            "'best'",
        ),
        ("[llm]\nstop = 'x'", "llm.stop must be a list of texts", ""),
        ("threads = -1", "threads must be an integer from 0 to 256, not -1", ""),
        ("threads = '2'", "threads must be an integer from 0 to 256, not '2'", ""),
        ("[asr]\nmodel = 3", "asr.model must be text, not 3", ""),
        ("[llm]\nnum_speculative_tokens = 'atuo'", "an integer from 0 or 'auto'", "'auto'"),
        ("[llm]\ntemperature = nan", "llm.temperature must be a number from 0, not nan", ""),
        ("[llm]\ntemperature = 1" + "0" * 400, "llm.temperature must be a number", ""),
        ("[turns]\nthreshold = 1.5", "turns.threshold must be a number from 0 to 1, not 1.5", ""),
        ("preset", "is not valid TOML", ""),
    ],
)
def test_a_wrong_key_or_value_in_a_file_names_the_file_and_what_was_expected(
    tmp_path: Path, text: str, message: str, hint: str
) -> None:
    file = write(tmp_path / "my.toml", text)
    with pytest.raises(ConfigError) as caught:
        load_config([file])
    assert caught.value.message.startswith(str(file))
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert "\n" not in caught.value.message


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'preset = "\xe9"')
    (tmp_path / "deep.toml").write_text("threads = " + "[" * 5000)
    (tmp_path / "huge.toml").write_text("# a comment\n" * 100_000)
    for path, problem in (
        (tmp_path / "missing.toml", "cannot read"),
        (tmp_path, "it is not a file"),
        (Path("/dev/zero"), "cannot read"),
        (tmp_path / "latin.toml", "not valid TOML"),
        (tmp_path / "deep.toml", "not valid TOML"),
        (tmp_path / "huge.toml", "larger than 1 MiB"),
    ):
        with pytest.raises(ConfigError, match=problem) as caught:
            load_config([path])
        assert str(path) in caught.value.message


def bounds(hint: Any) -> list[Meta]:
    return [mark for mark in marks(hint) if mark.ge is not None]


@pytest.mark.parametrize("key", [key for key, hint in KEYS.items() if bounds(hint)])
def test_bounds_are_included_and_what_lies_beyond_is_refused(key: str) -> None:
    (limit,) = bounds(KEYS[key])
    for edge, step in ((limit.ge, -1), (limit.le, 1)):
        if edge is not None:
            config, _ = load_config(flags={key: f"{edge:g}"})
            assert flatten(config)[key] == edge
            with pytest.raises(ConfigError, match=r"must be .* from"):
                load_config(flags={key: f"{edge + step:g}"})


@given(st.text(max_size=20), st.text(max_size=8))
def test_no_key_or_text_escapes_as_anything_but_a_config_error(key: str, text: str) -> None:
    for name in (key, "threads", "asr.pad_s", "llm.num_speculative_tokens", "preset"):
        try:
            load_config(flags={name: text})
        except ConfigError as error:
            assert error.message


# --- the page of all settings ---------------------------------------------------------------------


def test_the_page_of_all_settings_is_up_to_date() -> None:
    shown = Path(__file__, "../../../docs/configuration.md").resolve().read_text(encoding="utf-8")
    assert shown == page(), "run: make docs"


def test_settings_of_an_engines_own_are_merged_by_name(tmp_path: Path) -> None:
    weak, strong = tmp_path / "a.toml", tmp_path / "b.toml"
    weak.write_text('[llm.options]\nmood = "sulky"\nrepeats = 2')
    strong.write_text("[llm.options]\nrepeats = 3")
    config, origins = load_config([weak, strong], {"tts.options.pitch": "4"})
    assert config.llm.options == {"mood": "sulky", "repeats": 3}
    assert config.tts.options == {"pitch": "4"}
    assert origins["llm.options.mood"] == str(weak)
    assert origins["llm.options.repeats"] == str(strong)
    assert assembled(flatten(config)) == config


def test_a_table_of_settings_is_no_setting(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    for text, message in (
        ("[llm]\noptions = 2", r"llm\.options is a section"),
        ("[vad.options]\nx = 2", r"vad\.options is not a setting"),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError, match=message):
            load_config([file])
