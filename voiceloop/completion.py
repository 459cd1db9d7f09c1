"""Completion scripts for shells: commands, options, and the words that an option takes.

A script contains all words. So the shell completes them without starting voiceloop. If no word
fits, the shell completes the names of files. zsh runs the bash script.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from voiceloop.config import KEYS
from voiceloop.errors import ConfigError
from voiceloop.flags import Command, arguments
from voiceloop.manual import beginning, meaning, meanings, purpose, uses
from voiceloop.schema import members


class Option(NamedTuple):
    """An option of the command line; its name includes the dashes."""

    name: str
    meaning: str
    flag: bool = False
    """True for an option without a value."""
    choices: tuple[str, ...] = ()
    """The possible values of the option. Empty if any text is allowed, and for a flag."""


class CompletionWord(NamedTuple):
    """The words that may come next on a command line, after what was typed so far.

    That is nothing, a whole command, or the first word of a command of two words.
    """

    meaning: str
    options: tuple[Option, ...]
    members: tuple[str, ...] = ()
    """The first or second words of commands that may come next; empty after a whole command."""


SHELLS = ("bash", "zsh", "fish")
HELP = (Option("--help", "tell more", flag=True), Option("--help-all", "tell all", flag=True))
PROGRAM = (
    HELP[0],
    Option("--version", "print the version", flag=True),
    Option("--print-completion", "print this script", choices=SHELLS),
)
ZSH = """\
autoload -U +X compinit bashcompinit
(( $+functions[compdef] )) || compinit
bashcompinit
"""
BASH = """\
_voiceloop() {{
    local current=$2 before=$3 command= words= word at
    if [[ $before == "=" ]]; then before=${{COMP_WORDS[COMP_CWORD-2]}}; fi
    if [[ $current == "=" ]]; then current=; fi
    for ((at = 1; at < COMP_CWORD; at++)); do
        word=${{COMP_WORDS[at]}}
        case "$command|$word" in
            {first}) command=$word ;;
            {second}) command="$command $word" ;;
        esac
    done
    case "$command $before" in
{values}
        *) case "$command|$current" in
{options}
        esac ;;
    esac
    COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -o default -F _voiceloop voiceloop
"""


def script(shell: str, commands: Mapping[str, type[Command]], families: Mapping[str, str]) -> str:
    """Return the completion script for `shell`, one of `SHELLS`. Other shells raise ConfigError.

    `families` maps the first word of commands of two words to a description of them.
    """
    if shell not in SHELLS:
        known = ", ".join(SHELLS)
        raise ConfigError(f"there is no completion for '{shell}'", f"choose one of: {known}")
    found = words(commands, families)
    return _fish(found) if shell == "fish" else ZSH * (shell == "zsh") + _bash(found)


def words(
    commands: Mapping[str, type[Command]], families: Mapping[str, str]
) -> dict[str, CompletionWord]:
    """Return the words that may follow each beginning of a command line.

    The keys are the beginnings, e.g. `bench` or `bench latency`. The empty text is the start.
    """
    firsts = tuple(dict.fromkeys(name.split()[0] for name in commands))
    found = {"": CompletionWord("", PROGRAM, firsts)}
    for first in firsts:
        own = tuple(name.split()[1] for name in commands if name.startswith(f"{first} "))
        if own:
            found[first] = CompletionWord(families[first], HELP[:1], own)
    for name, kind in commands.items():
        found[name] = CompletionWord(purpose(kind), (*_own(kind), *_settings(kind), *HELP))
    return found


def _own(kind: type[Command]) -> Iterable[Option]:
    texts = meanings(kind)
    for one in arguments(kind):
        if not one.positional:
            flag = bool in members(one.hint)
            text = beginning(texts[one.field])
            yield Option(f"--{one.options[0]}", text, flag, _choices(one.hint))


def _settings(kind: type[Command]) -> Iterable[Option]:
    yield Option("--config", beginning(meanings(kind)["config"]))
    for key, hint in KEYS.items():
        if uses(kind, key):
            none = ("none",) * (NoneType in members(hint))
            name = f"--{key.replace('_', '-')}"
            yield Option(name, beginning(meaning(key)), choices=(*_choices(hint), *none))


def _choices(hint: Any) -> tuple[str, ...]:
    return tuple(
        choice for one in members(hint) if get_origin(one) is Literal for choice in get_args(one)
    )


def _bash(found: Mapping[str, CompletionWord]) -> str:
    second = [f"'{name}|{own}'" for name, word in found.items() if name for own in word.members]
    options: list[str] = []
    for name, word in found.items():
        listed = " ".join(one.name for one in word.options)
        options.append(f"            '{name}|-'*) words='{listed}' ;;")
        if word.members:
            options.append(f"            '{name}|'*) words='{' '.join(word.members)}' ;;")
    return BASH.format(
        first="|".join(f"'|{name}'" for name in found[""].members),
        second="|".join(second),
        values="\n".join(f"        {case}) words='{some}' ;;" for case, some in _values(found)),
        options="\n".join(options),
    )


def _values(found: Mapping[str, CompletionWord]) -> Iterator[tuple[str, str]]:
    """Yield a bash pattern for a command and an option, and the words that may follow them.

    If an option has the same words for every command, one pattern with `*` stands for all.
    """
    by_option: dict[str, dict[str, str]] = {}
    for name, word in found.items():
        for one in word.options:
            by_option.setdefault(one.name, {})[name] = " ".join(one.choices)
    for option, by_command in by_option.items():
        if len(set(by_command.values())) == 1:
            by_command = {"*": next(iter(by_command.values()))}
        for name, choices in by_command.items():
            if choices:
                yield f"'{name} {option}'".replace("'*", "*'"), choices


def _fish(found: Mapping[str, CompletionWord]) -> str:
    lines: list[str] = []
    for name, word in found.items():
        seen = [f"__fish_seen_subcommand_from {part}" for part in name.split()]
        after = " ".join(word.members)
        unseen = [f"not __fish_seen_subcommand_from {after}"] if after else []
        where = f"complete -c voiceloop -n {_quoted('; and '.join([*seen, *unseen]))}"
        for own in word.members:
            description = found[f"{name} {own}".strip()].meaning
            lines.append(f"{where} -f -a {own} -d {_quoted(description)}")
        for one in word.options:
            takes = f" -x -a {_quoted(' '.join(one.choices))}" if one.choices else " -r"
            value = "" if one.flag else takes
            lines.append(f"{where} -l {one.name[2:]}{value} -d {_quoted(one.meaning)}")
    return "\n".join([*lines, ""])


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
