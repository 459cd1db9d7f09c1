"""Help: short enough for a small terminal, true, and whole where all is asked for."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from msgspec.structs import replace

from voiceloop.cli import manual
from voiceloop.cli.main import COMMANDS, DESCRIPTION, GROUPS
from voiceloop.settings.config import KEYS, SECTIONS, Config
from voiceloop.settings.flags import Help, arguments, parse
from voiceloop.settings.schema import meanings

pytestmark = pytest.mark.pure

KINDS = {name: kind for name, (kind, _) in COMMANDS.items()}
FAMILIES = sorted({name.split()[0] for name in KINDS if " " in name})
ROOT = Path(__file__).parents[2]


USUAL = Config()


def told(name: str, settings: Config = USUAL, *, whole: bool = False) -> str:
    """The help of a command, or of several, on a terminal of 80 columns."""
    asked = Help(name, whole, settings)
    return manual.help_text(asked, KINDS, GROUPS, DESCRIPTION, 80)


def flat(text: str) -> str:
    """Text without its line ends."""
    return " ".join(text.split())


SHORT = {name: told(name) for name in ("", *FAMILIES, *KINDS)}


@pytest.mark.parametrize("name", SHORT)
def test_it_fits_on_a_small_terminal(name: str) -> None:
    lines = SHORT[name].splitlines()
    assert len(lines) <= 23
    assert [line for line in lines if len(line) > 80] == []
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("name", KINDS)
def test_it_tells_all_that_is_a_commands_own(name: str, whole: bool) -> None:
    text = told(name, whole=whole)
    assert text.startswith((KINDS[name].__doc__ or "").split("\n")[0])
    for argument in arguments(KINDS[name]):
        assert re.search(rf"^  {re.escape(argument.usage)}(  |$)", text, re.MULTILINE), argument


@pytest.mark.parametrize("name", KINDS)
def test_examples_are_lines_that_can_be_typed(name: str) -> None:
    examples = KINDS[name].examples
    assert 1 <= len(examples) <= 2
    for example in examples:
        program, *words = shlex.split(example.partition(" > ")[0])
        assert program == "voiceloop"
        kind = type(parse(KINDS, words, files=()))
        assert kind is KINDS[name] if example == examples[0] else kind is not Help
        assert re.search(rf"(^  |: ){re.escape(example)}$", told(name), re.MULTILINE)


@pytest.mark.parametrize("name", KINDS)
def test_it_says_where_more_is_told(name: str) -> None:
    assert f"{name} --help-all" in told(name).splitlines()[-1]
    assert told(name).endswith(KINDS[name].docs)
    assert (ROOT / KINDS[name].docs).is_file()


@pytest.mark.parametrize("name", KINDS)
def test_all_of_it_has_every_setting_that_the_command_uses(name: str) -> None:
    uses, text = KINDS[name].uses, told(name, whole=True)
    said = meanings(Config) | {
        f"{section}.{field}": meaning
        for section in SECTIONS
        for field, meaning in meanings(type(getattr(Config(), section))).items()
    }
    for key in KEYS:
        section = key.rpartition(".")[0]
        shown = f"\n  --{key.replace('_', '-')} " in text
        assert shown == (section in uses if section else bool(uses)), key
        assert not shown or said[key] in flat(text), key


def test_it_tells_what_settings_are() -> None:
    config = replace(Config(), asr=replace(Config().asr, language="zz", pad_s=None))
    assert "[zz]" in told("talk", config)
    assert "--asr.pad-s X|none  [none]" in told("talk", config, whole=True)


def test_every_command_has_its_place_in_the_overview() -> None:
    listed = [word for words in GROUPS.values() for word in words]
    assert sorted(listed) == sorted({name.split()[0] for name in KINDS})
    for word in listed:
        assert f"\n  {word} " in SHORT[""]
    for word in FAMILIES:
        assert all(f"\n  {name} " in SHORT[word] for name in KINDS if name.startswith(word))


@pytest.mark.parametrize("name", KINDS)
def test_what_only_its_makers_understand_is_not_in_it(name: str) -> None:
    text = flat(told(name, whole=True))
    for words in ("Its fields are", "ntry point", "None", "FLOAT", "msgspec"):
        assert words not in text
