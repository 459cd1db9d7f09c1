"""Writes help for the command line: the pages of `--help`, and the scripts that complete words."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from types import NoneType
from typing import Any, Literal, NamedTuple, cast, get_args, get_origin

from voiceloop.errors import ConfigError
from voiceloop.settings.config import KEYS, OPTIONS, Config, meaning
from voiceloop.settings.flags import PROGRAM, Command, Help, arguments, metavar
from voiceloop.settings.schema import default_of, hints_of, is_struct, meanings, members

LINES = 23
"""Maximum lines of help. A terminal of 24 lines shows them all, and the next prompt."""
OFTEN = (
    *("preset", "asr.language", "llm.target", "tts.voice", "tts.speed", "asr.model"),
    *("tts.engine", "llm.system", "server.max_sessions"),
)
"""The settings that people change most. Help shows those that a command uses, as many as fit."""
COLUMN = 28
"""The last column at which meanings may begin. A usage that reaches it gets a line for itself."""


class ManualEntry(NamedTuple):
    """An option, a word or a command with its meaning."""

    usage: str
    meaning: str
    value: str = ""
    """The default value; empty if there is none."""


Groups = Mapping[str, Mapping[str, str]]
"""The list of commands: for each title, the first words of commands with their descriptions.

If the first word is a whole command, its description is empty here. Then the docstring of the
command's class is shown.
"""


def help_text(
    request: Help, commands: Mapping[str, type[Command]], groups: Groups, about: str, width: int
) -> str:
    """Return the requested help, in lines of `width` columns; `about` describes the program."""
    if not request.name:
        return overview(commands, groups, about, width)
    if request.name in commands:
        return page(commands[request.name], request, width)
    first = f"{request.name} "
    members = {name: kind for name, kind in commands.items() if name.startswith(first)}
    return family(request.name, members, groups, width)


def overview(commands: Mapping[str, type[Command]], groups: Groups, about: str, width: int) -> str:
    """Return the help of the program: all commands."""
    titled = [
        (
            title,
            [ManualEntry(word, text or purpose(commands[word])) for word, text in words.items()],
        )
        for title, words in groups.items()
    ]
    column = _column(entry for _, entries in titled for entry in entries)
    lines = [about, f"usage: {PROGRAM} COMMAND [OPTIONS]", ""]
    for title, entries in titled:
        lines += [f"{title}:", *_rows(entries, column, width)]
    more = f"{PROGRAM} COMMAND --help tells more. Also: --version, --print-completion SHELL"
    return "\n".join([*lines, "", more])


def family(name: str, commands: Mapping[str, type[Command]], groups: Groups, width: int) -> str:
    """Return the help of `name`, the first word of several `commands`."""
    about = next(words[name] for words in groups.values() if name in words)
    entries = [ManualEntry(own, purpose(kind)) for own, kind in commands.items()]
    lines = [f"{about}.", f"usage: {PROGRAM} {name} COMMAND [OPTIONS]", ""]
    lines += _rows(entries, _column(entries), width)
    return "\n".join([*lines, "", f"{PROGRAM} {name} COMMAND --help tells more."])


def page(kind: type[Command], request: Help, width: int) -> str:
    """Return the help of the command `kind`, with the current values of the settings."""
    own = _own(kind)
    usage = " ".join(argument.usage for argument in arguments(kind) if argument.required)
    head = [f"usage: {PROGRAM} {request.name} {usage}{' ' * bool(usage)}[OPTIONS]", ""]
    examples = ["for example:", *(f"  {example}" for example in kind.examples)]
    if len(kind.examples) == 1:
        examples = [f"for example: {kind.examples[0]}"]
    if request.whole:
        about = textwrap.dedent(f"    {kind.__doc__}").strip().splitlines()
        return "\n".join([*about, *head, *_whole(kind, own, request.settings, width), *examples])
    brief = [ManualEntry(one.usage, beginning(one.meaning), one.value) for one in own]
    often = [
        ManualEntry(one.usage, beginning(one.meaning), one.value)
        for one in (_setting(key, request.settings) for key in OFTEN if uses(kind, key))
    ]
    column = _column([*brief, *often])
    tail = [*examples, f"More: {PROGRAM} {request.name} --help-all, {kind.docs}"]
    lines = [f"{purpose(kind)}.", *head, *_rows(brief, column, width), *[""] * bool(brief)]
    shown: list[str] = []
    for rows in (_rows([one], column, width) for one in often):
        if len([*lines, *shown, *rows, "", *tail]) > LINES:
            break
        shown += rows
    return "\n".join([*lines, *shown, *[""] * bool(shown), *tail])


def purpose(kind: type[Command]) -> str:
    """Return the first line of a command's docstring, without the full stop."""
    return (kind.__doc__ or "").split("\n")[0].rstrip(".")


def beginning(meaning: str) -> str:
    """Return the text up to its first full stop or semicolon."""
    return re.split(r"[.;] ", meaning)[0].rstrip(".")


def uses(kind: type[Command], key: str) -> bool:
    """Return whether a command uses a setting, by its dotted key."""
    section = key.rpartition(".")[0]
    return section in kind.uses if section else bool(kind.uses)


def _own(kind: type[Command]) -> list[ManualEntry]:
    """Return an entry for each argument of a command's own."""
    texts = meanings(kind)
    found: list[ManualEntry] = []
    for argument in arguments(kind):
        default = None if argument.required else default_of(kind, argument.field)
        value = "" if default in (None, False) else _value(default)
        found.append(ManualEntry(argument.usage, texts[argument.field], value))
    return found


def _setting(key: str, settings: Config) -> ManualEntry:
    usage = f"--{key.replace('_', '-')} {metavar(KEYS[key])}"
    return ManualEntry(usage, meaning(key), _value(attrgetter(key)(settings)))


def _of_engine(section: str, settings: Config) -> Iterable[ManualEntry]:
    """Yield an entry for each own setting of the engine that `section` configures.

    The default engine has none.
    """
    config = getattr(settings, section)
    usual = getattr(Config(), section)
    if f"{section}.options" not in OPTIONS or config.engine == usual.engine:
        return
    from voiceloop.engines import Kind, options_of, registered

    kind = cast(Kind, section)
    own = options_of(kind, config.engine) if config.engine in registered(kind) else None
    if own is None:
        return
    for name, hint in hints_of(own).items():
        usage = f"--{section}.options.{name.replace('_', '-')} {metavar(hint)}"
        value = config.options.get(name, default_of(own, name))
        yield ManualEntry(usage, meanings(own).get(name, ""), _value(value))


def _value(value: object) -> str:
    if isinstance(value, tuple | Mapping):  # of a mapping only the names: values may be secret
        return ", ".join(map(str, cast("Iterable[object]", value)))
    return "none" if value is None else str(value)


def _whole(
    kind: type[Command], own: Sequence[ManualEntry], settings: Config, width: int
) -> Iterable[str]:
    """Yield the lines of the help about all arguments and settings, with their full docstrings."""
    config = ManualEntry("--config FILE", meanings(Command)["config"])
    sections: list[tuple[str, list[ManualEntry]]] = [("", [*own, config])]
    for section, hint in hints_of(Config).items():
        if is_struct(hint) and section in kind.uses:
            about = str(hint.__doc__).split("\n")[0].rstrip(".")
            keys = [key for key in KEYS if key.startswith(f"{section}.")]
            entries = [_setting(key, settings) for key in keys]
            sections.append((f"{section}: {about}", [*entries, *_of_engine(section, settings)]))
    if kind.uses:
        top = [_setting(key, settings) for key in KEYS if "." not in key]
        sections.insert(1, ("settings, and what they are now", top))
    for title, entries in sections:
        if title:
            yield from (title, "")
        for entry in entries:
            value = f"  [{entry.value}]" if entry.value else ""
            yield f"  {entry.usage}{value}"
            yield from (f"      {line}" for line in _wrapped(entry.meaning, width - 6))
        yield ""


def _column(entries: Iterable[ManualEntry]) -> int:
    return min(COLUMN, max((len(entry.usage) + 4 for entry in entries), default=0))


def _rows(entries: Iterable[ManualEntry], column: int, width: int) -> list[str]:
    """Lay entries out in two columns. A usage wider than the first has a line of its own, unless
    its meaning fits behind it."""
    rows: list[str] = []
    for entry in entries:
        meaning = f"{entry.meaning} [{entry.value}]" if entry.value else entry.meaning
        first, *others = _wrapped(meaning, width - column)
        usage = f"  {entry.usage}"
        if len(usage) + 2 > column and len(usage) + 2 + len(meaning) <= width:
            usage, first, others = f"{usage}  ", meaning, []
        elif len(usage) + 2 > column:
            rows.append(usage)
            usage = ""
        rows += [f"{usage:<{column}}{first}", *(f"{'':<{column}}{line}" for line in others)]
    return rows


def _wrapped(text: str, width: int) -> list[str]:
    """Wrap `text` into lines; options and addresses stay whole."""
    return textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)


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
GLOBAL = (
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
    found = {"": CompletionWord("", GLOBAL, firsts)}
    for first in firsts:
        own = tuple(name.split()[1] for name in commands if name.startswith(f"{first} "))
        if own:
            found[first] = CompletionWord(families[first], HELP[:1], own)
    for name, kind in commands.items():
        found[name] = CompletionWord(purpose(kind), (*_own_words(kind), *_settings(kind), *HELP))
    return found


def _own_words(kind: type[Command]) -> Iterable[Option]:
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
