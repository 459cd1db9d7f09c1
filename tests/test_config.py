"""Settings: which layer wins, what is refused, and how a command line carries them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest
import tyro
from hypothesis import given
from hypothesis import strategies as st

from tools.configuration import page
from voiceloop.config import (
    KEYS,
    PRESETS,
    Config,
    Range,
    config_files,
    flatten,
    load_config,
)
from voiceloop.errors import ConfigError
from voiceloop.flags import Command, parse

pytestmark = pytest.mark.pure


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


# --- which layer wins ---------------------------------------------------------------------------


def test_without_files_and_flags_everything_is_the_default() -> None:
    config, origins = load_config()
    assert config == Config()
    assert set(origins) == set(KEYS)
    assert set(origins.values()) == {"default"}


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


def test_every_preset_can_be_chosen_and_every_choice_is_a_preset() -> None:
    assert set(get_args(KEYS["preset"])) == set(PRESETS)


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "threads": st.integers(0, 1000),
    "asr.model": st.text(),
    "asr.device": st.sampled_from(["auto", "cpu", "cuda"]),
    "asr.min_window_s": st.floats(0, 30),
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
    short = write(tmp_path / "short.toml", "[asr]\nmin_window_s = 2")
    none = write(tmp_path / "none.toml", '[asr]\nmin_window_s = "none"')
    assert load_config([short])[0].asr.min_window_s == 2.0
    assert load_config([short, none])[0].asr.min_window_s is None
    assert load_config([short], {"asr.min_window_s": "none"})[0].asr.min_window_s is None


def test_the_files_that_apply_are_the_users_then_the_folders_then_the_named_one(
    tmp_path: Path,
) -> None:
    user = write(tmp_path / "xdg" / "voiceloop" / "config.toml", "")
    here = write(tmp_path / "here" / "voiceloop.toml", "")
    named = tmp_path / "named.toml"
    environ = {"XDG_CONFIG_HOME": str(tmp_path / "xdg")}
    assert config_files(named, environ=environ, folder=here.parent) == [user, here, named]
    assert config_files(environ=environ, folder=tmp_path) == [user]


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("[asr]\nmodle = 'x'", "asr.modle is not a setting", "'asr.model'"),
        ("[assr]\nmodel = 'x'", "assr is not a setting", "'asr"),
        ("model = 'x'", "model is not a setting", "'asr.model'"),
        ("zzzzzz = 1", "zzzzzz is not a setting", "voiceloop config"),
        ("asr = 3", "asr is a section", "[asr]"),
        ("preset = 'bset'", "preset must be 'starter' or 'small' or 'best', not 'bset'", "'best'"),
        ("preset = 3", "preset must be", ""),
        ("threads = -1", "threads must be an integer from 0, not -1", ""),
        ("threads = true", "threads must be an integer from 0, not True", ""),
        ("threads = 1.5", "threads must be an integer", ""),
        ("threads = '2'", "threads must be an integer from 0, not '2'", ""),
        ("[asr]\nmodel = 3", "asr.model must be text, not 3", ""),
        ("[asr]\nmodel = []", "asr.model must be text, not []", ""),
        ("[asr.model]\nname = 'x'", "asr.model must be text", ""),
        ("[asr]\ndevice = 'gpu'", "asr.device must be 'auto' or 'cpu' or 'cuda'", ""),
        ("[asr]\nmin_window_s = 31", "a number from 0 to 30 or 'none', not 31", ""),
        ("[llm]\nnum_speculative_tokens = 'atuo'", "an integer from 0 or 'auto'", "'auto'"),
        ("[llm]\ntemperature = nan", "llm.temperature must be a number from 0, not nan", ""),
        ("[llm]\ntemperature = inf", "llm.temperature must be a number from 0, not inf", ""),
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
    for name in ("missing.toml", ".", "latin.toml"):
        with pytest.raises(ConfigError, match=r"cannot read|not valid TOML") as caught:
            load_config([tmp_path / name])
        assert str(tmp_path) in caught.value.message


def bounds(hint: Any) -> list[Range]:
    found = [arg for arg in get_args(hint) if isinstance(arg, Range)]
    return found + [inner for arg in get_args(hint) for inner in bounds(arg)]


@pytest.mark.parametrize("key", [key for key, hint in KEYS.items() if bounds(hint)])
def test_bounds_are_included_and_what_lies_beyond_is_refused(key: str) -> None:
    (limit,) = bounds(KEYS[key])
    for edge, beyond in ((limit.low, limit.low - 1), (limit.high, limit.high + 1)):
        if abs(edge) != float("inf"):
            config, _ = load_config(flags={key: f"{edge:g}"})
            assert flatten(config)[key] == edge
            with pytest.raises(ConfigError, match=r"must be .* from"):
                load_config(flags={key: f"{beyond:g}"})


@given(st.text(max_size=20), st.text(max_size=8))
def test_no_key_or_text_escapes_as_anything_but_a_config_error(key: str, text: str) -> None:
    for name in (key, "threads", "asr.min_window_s", "llm.num_speculative_tokens", "preset"):
        try:
            load_config(flags={name: text})
        except ConfigError as error:
            assert error.message


# --- the command line ---------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Greet(Command):
    """Say hello."""

    name: tyro.conf.Positional[str]
    loud: bool = False


@dataclass(frozen=True, kw_only=True)
class Count(Command):
    """Count up."""

    to: int = 3


COMMANDS: dict[str, type[Greet] | type[Count]] = {"greet": Greet, "count": Count}


def run(*argv: str, files: tuple[Path, ...] = ()) -> Greet | Count:
    return parse(COMMANDS, argv, description="A test.", files=files)


def test_settings_are_given_before_or_after_the_command_in_either_spelling() -> None:
    for argv in (
        ("greet", "world", "--asr.beam-size", "4", "--llm.target=mine"),
        ("--asr.beam_size=4", "--llm.target", "mine", "greet", "world"),
    ):
        command = run(*argv)
        assert isinstance(command, Greet)
        assert (command.name, command.loud) == ("world", False)
        assert (command.settings.asr.beam_size, command.settings.llm.target) == (4, "mine")
        assert command.origins["llm.target"] == "flag"


def test_a_flag_may_be_empty_text() -> None:
    command = run("greet", "world", "--llm.system=", "--llm.target=mine")
    assert command.settings.llm.system == ""
    assert command.origins["llm.system"] == "flag"


def test_a_commands_own_options_go_with_the_named_file_which_beats_the_others(
    tmp_path: Path,
) -> None:
    other = write(tmp_path / "b.toml", "threads = 3")
    file = write(tmp_path / "a.toml", "threads = 2")
    command = run("count", "--to", "5", "--config", str(file), files=(other,))
    assert isinstance(command, Count)
    assert (command.to, command.settings.threads, command.config) == (5, 2, file)
    assert command.origins["threads"] == str(file)


@pytest.mark.parametrize(
    ("argv", "message", "hint"),
    [
        (["greeet", "x"], "there is no command 'greeet'", "'greet'"),
        (["zzz"], "there is no command 'zzz'", "greet, count"),
        (["greet", "x", "--luod"], "there is no option --luod", "--loud"),
        (["greet", "x", "--asr.modle", "y"], "there is no option --asr.modle", "--asr.model"),
        (["greet", "x", "--to", "3"], "there is no option --to", ""),
        (["greet", "--name", "x"], "there is no option --name", ""),
        (["greet", "x", "--origin", "y"], "there is no option --origin", ""),
        (["--qqqq"], "there is no option --qqqq", "--help"),
        (["greet", "x", "--asr.model"], "--asr.model needs a value", ""),
        (["greet", "x", "--asr.beam-size", "five"], "--asr.beam-size must be an integer", ""),
        (["greet", "x", "--preset", "smal"], "--preset must be", "'small'"),
        (["greet", "x", "--config", "/no/such.toml"], "cannot read /no/such.toml", ""),
    ],
)
def test_a_wrong_command_option_or_setting_is_one_line_that_names_the_nearest(
    argv: list[str], message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        run(*argv)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_what_follows_two_dashes_is_never_an_option() -> None:
    command = run("greet", "--", "--asr.model")
    assert isinstance(command, Greet)
    assert command.name == "--asr.model"


def test_help_lists_every_setting_with_its_merged_value(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path / "a.toml", '[asr]\nlanguage = "zz"')
    with pytest.raises(SystemExit) as ended:
        run("greet", "--help", files=(file,))
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert ended.value.code == 0
    assert "Say hello." in shown
    assert "default: zz" in shown
    for key in KEYS:
        assert f"--{key.replace('_', '-')}" in shown


def test_the_page_of_all_settings_is_up_to_date() -> None:
    shown = Path(__file__, "../../docs/configuration.md").resolve().read_text(encoding="utf-8")
    assert shown == page(), "run: make docs"
