"""The command line: what it carries, and that every mistake in it is one line and a hint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta
from msgspec.structs import replace

from voiceloop.errors import ConfigError
from voiceloop.settings.config import KEYS, Config
from voiceloop.settings.flags import POSITIONAL, Command, Help, metavar, parse, written

pytestmark = pytest.mark.pure


class Greet(Command, frozen=True, kw_only=True):
    """Say hello."""

    name: Annotated[str, POSITIONAL]
    loud: bool = False


class Count(Command, frozen=True, kw_only=True):
    """Count up."""

    to: int = 3
    pace: Literal["slow", "fast"] = "slow"


class Copy(Command, frozen=True, kw_only=True):
    """Copy files."""

    files: Annotated[tuple[Path, ...], POSITIONAL, written("FILES")]
    into: Annotated[Path, written("FOLDER")]
    at_most: int | None = None
    share: Annotated[int, Meta(ge=1, le=100), written("PERCENT")] = 50
    leave_out: tuple[str, ...] = ()


class Pair(Command, frozen=True, kw_only=True):
    """Show two."""

    first: Annotated[str, POSITIONAL]
    second: Annotated[str, POSITIONAL]
    count: bool = False


Kind = Greet | Count | Copy
COMMANDS: dict[str, type[Kind]] = {"greet": Greet, "count": Count, "copy": Copy}


SHOWS: dict[str, type[Kind | Pair]] = {**COMMANDS, "show pair": Pair, "show all": Count}


def run(*argv: str, files: tuple[Path, ...] = ()) -> Kind | Help:
    return parse(COMMANDS, argv, files=files)


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
    assert isinstance(command, Greet)
    assert command.settings.llm.system == ""
    assert command.origins["llm.system"] == "flag"


def test_a_commands_own_options_go_with_the_named_file_which_beats_the_others(
    tmp_path: Path,
) -> None:
    other, file = tmp_path / "b.toml", tmp_path / "a.toml"
    other.write_text("threads = 3")
    file.write_text("threads = 2")
    command = run("count", "--to", "5", "--config", str(file), files=(other,))
    assert isinstance(command, Count)
    assert (command.to, command.settings.threads, command.config) == (5, 2, file)
    assert command.origins["threads"] == str(file)


@pytest.mark.parametrize(
    ("argv", "message", "hint"),
    [
        (["greeet", "x"], "there is no command 'greeet'", "'greet'"),
        (["zzz"], "there is no command 'zzz'", "greet, count, copy"),
        (["--loud"], "no command was given", "greet, count, copy"),
        (["--verison"], "there is no option --verison", "--version"),
        (["greet", "x", "--luod"], "there is no option --luod", "--loud"),
        (["greet", "x", "--server.loud"], "there is no option --server.loud", "--loud"),
        (["greet", "x", "--asr.modle", "y"], "there is no option --asr.modle", "--asr.model"),
        (["greet", "x", "-l"], "there is no option -l", "`voiceloop greet --help`"),
        (["greet", "x", "--asr.model"], "--asr.model needs a value", "--asr.model=VALUE"),
        (["greet", "x", "--asr.model", "--loud"], "--asr.model needs a value", "--asr.model="),
        (["greet"], "greet needs NAME", "voiceloop greet NAME"),
        (["greet", "x", "y"], "one argument too many: 'y'", "voiceloop greet NAME"),
        (["greet", "x", "--loud=yes"], "--loud takes no value", "=yes"),
        (["count", "--to", "--pace", "fast"], "--to needs a value", "--to=VALUE"),
        (["count", "--to", "five"], "--to must be an integer, not 'five'", "count --help"),
        (["count", "--pace", "fsat"], "--pace must be 'slow' or 'fast', not 'fsat'", "'fast'"),
        (["copy"], "copy needs FILES and --into FOLDER", "voiceloop copy FILES --into FOLDER"),
        (["copy", "x"], "copy needs --into FOLDER", "voiceloop copy FILES --into FOLDER"),
        (["greet", "x", "--config", "/no/such.toml"], "cannot read /no/such.toml", "name"),
    ],
)
def test_a_wrong_or_missing_word_is_one_line_and_a_hint_that_names_the_nearest(
    argv: list[str], message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        run(*argv)
    assert message in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "line", ["show pair a b", "show --count pair a b", "show pair a b --count"]
)
def test_a_name_of_two_words_may_have_options_between_them(line: str) -> None:
    command = parse(SHOWS, line.split(), files=())
    assert isinstance(command, Pair)
    assert (command.first, command.second) == ("a", "b")
    assert command.count == ("--count" in line)


@pytest.mark.parametrize(
    ("line", "message", "hint"),
    [
        ("show", "show is several commands", "show pair, show all"),
        ("show --count", "show is several commands", "show pair, show all"),
        ("show pare", "there is no command 'show pare'", "'show pair'"),
        ("show pair a", "show pair needs SECOND", "voiceloop show pair FIRST SECOND"),
        ("show all --cuont", "there is no option --cuont", ""),
        ("showw", "there is no command 'showw'", "'show'"),
        ("pair a b", "there is no command 'pair'", "'show pair'"),
        ("run a", "there is no command 'run'", "'talk'"),
    ],
)
def test_a_mistake_in_a_name_of_two_words_is_told_like_any(
    line: str, message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(SHOWS, line.split(), files=())
    assert message in caught.value.message
    assert hint in caught.value.hint


words = st.sampled_from(
    [
        *("greet", "count", "copy", "x", "5", "", "-", "--", "-5", "--loud", "--no-loud", "--to"),
        *("--to=5", "--to=", "--pace", "--pace=fast", "fast", "--into", "--into=x", "--at_most=1"),
        *("--asr.model", "--asr.beam-size", "--threads=2", "--threads=x", "--nosuch", "--=", "-q"),
    ]
)


@given(st.lists(words, min_size=1, max_size=6))
def test_any_words_are_a_command_or_one_line_and_a_hint(argv: list[str]) -> None:
    try:
        command = run(*argv)
    except ConfigError as error:
        assert "\n" not in error.message
        assert error.hint
    else:
        assert type(command) is COMMANDS[next(word for word in argv if word in COMMANDS)]


@st.composite
def lines(draw: st.DrawFn) -> tuple[list[str], Kind]:
    """A command line that is right, and what it says."""
    name = draw(st.sampled_from(list(COMMANDS)))
    values: dict[str, st.SearchStrategy[Any]] = {
        "greet": {},
        "count": {"to": st.integers(-9, 99), "pace": st.sampled_from(["slow", "fast"])},
        "copy": {"into": st.sampled_from([Path("a"), Path("b c")]), "at_most": st.integers(0, 9)},
    }[name]
    given = {
        field: draw(value)
        for field, value in values.items()
        if field == "into" or draw(st.booleans())
    }
    options: list[list[str]] = []
    for field, value in given.items():
        option = f"--{field.replace('_', draw(st.sampled_from('-_')))}"
        options.append([f"{option}={value}"] if draw(st.booleans()) else [option, str(value)])
    if name == "greet" and draw(st.booleans()):
        given["loud"] = draw(st.booleans())
        options.append(["--loud" if given["loud"] else "--no-loud"])
    alone = {"greet": ["world"], "count": [], "copy": ["x", "y"]}[name]
    places: dict[str, Any] = {
        "greet": {"name": "world"},
        "copy": {"files": (Path("x"), Path("y"))},
    }
    pieces = [[name], *draw(st.permutations([*options, alone]))]
    words = [word for piece in pieces for word in piece]
    return words, COMMANDS[name](**places.get(name, {}), **given)


@given(lines())
def test_what_is_right_is_read_as_it_says(line: tuple[list[str], Kind]) -> None:
    argv, expected = line
    assert replace(run(*argv), origins={}) == expected


@pytest.mark.parametrize(
    "line",
    [
        "copy --leave-out a b --into x -- f",
        "copy f --leave-out a --into x --leave-out b",
        "copy f --leave-out=a --into x --leave-out=b",
        "copy f --into x --leave_out a b",
    ],
)
def test_an_option_that_takes_several_values_takes_them_at_once_or_again(line: str) -> None:
    command = run(*line.split())
    assert isinstance(command, Copy)
    assert command.leave_out == ("a", "b")
    assert command.files == (Path("f"),)


def test_a_setting_that_is_a_list_may_be_given_again() -> None:
    command = run("greet", "world", "--llm.stop", "a, b", "--llm.stop=###")
    assert command.settings.llm.stop == ("a, b", "###")


def test_what_follows_two_dashes_is_never_an_option() -> None:
    command = run("greet", "--", "--asr.model")
    assert isinstance(command, Greet)
    assert command.name == "--asr.model"


@pytest.mark.parametrize(
    ("line", "name", "whole"),
    [
        ("--help", "", False),
        ("copy --into --help", "copy", False),
        ("greet -h --nosuch", "greet", False),
        ("--help-all count x y --to five", "count", True),
        ("show --help", "show", False),
        ("show pair --help-all", "show pair", True),
    ],
)
def test_help_is_given_whatever_else_is_wrong(line: str, name: str, whole: bool) -> None:
    asked = parse({**COMMANDS, **SHOWS}, line.split(), files=())
    assert asked == Help(name, whole, Config())


def test_help_has_the_merged_settings(tmp_path: Path) -> None:
    file = tmp_path / "a.toml"
    file.write_text('[asr]\nlanguage = "zz"')
    asked = run("greet", "--help", "--threads", "3", files=(file,))
    assert isinstance(asked, Help)
    assert (asked.settings.asr.language, asked.settings.threads) == ("zz", 3)


@pytest.mark.parametrize(
    ("line", "name"),
    [("", ""), ("help", ""), ("help greet", "greet"), ("help show pair", "show pair")],
)
def test_nothing_and_the_word_help_ask_for_help(line: str, name: str) -> None:
    asked = parse(SHOWS, line.split(), files=())
    assert isinstance(asked, Help) and asked.name == name


def test_help_of_no_command_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="there is no command 'greeet'"):
        run("greeet", "--help")


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("llm.seed", "N|auto"),
        ("asr.pad_s", "X|none"),
        ("asr.device", "auto|cpu|cuda"),
        ("llm.stop", "TEXT …"),
        ("tts.voice", "TEXT"),
    ],
)
def test_what_a_setting_takes_is_written_in_words(key: str, written: str) -> None:
    assert metavar(KEYS[key]) == written
