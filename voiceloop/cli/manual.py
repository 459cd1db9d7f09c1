"""Writes help for the command line: the pages of `--help`, and the words that complete a line."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from types import NoneType
from typing import Literal, NamedTuple, cast, get_args, get_origin

from voiceloop.errors import ConfigError
from voiceloop.settings.config import KEYS, OPTIONS, Config, meaning
from voiceloop.settings.flags import (
    PROGRAM,
    Argument,
    Command,
    Help,
    arguments,
    members_of,
    metavar,
    named,
)
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
    name = request.name
    if name in commands:
        return page(commands[name], request, width)
    if name:
        about = f"{told(name, groups, commands)}."
        members = members_of(commands, name)
        titled = {"": [ManualEntry(own, purpose(kind)) for own, kind in members.items()]}
        more = f"{PROGRAM} {name} COMMAND --help tells more."
    else:
        titled = {
            title: [ManualEntry(word, told(word, groups, commands)) for word in words]
            for title, words in groups.items()
        }
        more = f"{PROGRAM} COMMAND --help tells more. Also: --version, --print-completion SHELL"
    column = _column(entry for entries in titled.values() for entry in entries)
    lines = [about, f"usage: {' '.join(filter(None, (PROGRAM, name)))} COMMAND [OPTIONS]", ""]
    for title, entries in titled.items():
        lines += [*[f"{title}:"] * bool(title), *_rows(entries, column, width)]
    return "\n".join([*lines, "", more])


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


def told(word: str, groups: Groups, commands: Mapping[str, type[Command]]) -> str:
    """Return the description of a command, or of those that begin with `word`."""
    text = next(words[word] for words in groups.values() if word in words)
    return text or purpose(commands[word])


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


# Completion ---------------------------------------------------------------------------------------

BASH = """\
_voiceloop() {
    local typed=("${COMP_WORDS[@]:1:COMP_CWORD}")
    COMPREPLY=($("${COMP_WORDS[0]}" --complete "${typed[@]}" 2>/dev/null | cut -f 1))
}
complete -o default -F _voiceloop voiceloop
"""
ZSH = """\
autoload -U +X compinit bashcompinit
(( $+functions[compdef] )) || compinit
bashcompinit
"""
FISH = """\
function __voiceloop
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l found ($words[1] --complete $words[2..] "$current" 2>/dev/null)
    and test -n "$found"
    and printf '%s\\n' $found
    or __fish_complete_path "$current"
end
complete -c voiceloop -f -a '(__voiceloop)'
"""
SHELLS = {"bash": BASH, "zsh": ZSH + BASH, "fish": FISH}
"""The scripts that let a shell ask `voiceloop --complete WORDS` when somebody presses Tab. If it
offers no word, the shell completes the names of files."""
PAGES = {"--help": "tell more", "--help-all": "tell all"}
"""Options of every command, with their meanings."""
GLOBAL = {
    "--help": "tell more",
    "--version": "print the version",
    "--print-completion": "print a script for the shell",
}
"""Options that stand in place of a command, with their meanings."""


def script(shell: str) -> str:
    """Return the completion script for `shell`, one of `SHELLS`. Other shells raise ConfigError."""
    if shell not in SHELLS:
        known = ", ".join(SHELLS)
        raise ConfigError(f"there is no completion for '{shell}'", f"choose one of: {known}")
    return SHELLS[shell]


def completions(
    typed: Sequence[str], commands: Mapping[str, type[Command]], groups: Groups
) -> dict[str, str]:
    """Return the words that may stand in place of the last of `typed`, with their meanings.

    A value that follows `=` may be a word of its own, as in bash, or a part of the option's word.
    """
    *before, current = [word for word in typed if word != "="] or [""]
    if typed[-1:] == ["="]:
        before, current = [*before, current], ""
    name, _ = named(commands, before)
    option, equals, value = current.partition("=")
    if equals and option.startswith("--"):
        found = _values(option, name, commands)
        return {f"{option}={one}": "" for one in found if one.startswith(value)}
    offered = dict.fromkeys(_values(before[-1], name, commands), "") if before else {}
    if not offered and current.startswith("-"):
        offered = _options(commands[name]) if name in commands else GLOBAL
    elif not offered and name not in commands:
        members = members_of(commands, name)
        offered = {own.removeprefix(f"{name} "): purpose(kind) for own, kind in members.items()}
        if not name:
            firsts = (word for words in groups.values() for word in words)
            offered = {word: told(word, groups, commands) for word in firsts}
    return {word: text for word, text in offered.items() if word.startswith(current)}


def _options(kind: type[Command]) -> dict[str, str]:
    """Return all options of a command, with their meanings."""
    texts = meanings(kind)
    own = {one.options[0]: texts[one.field] for one in arguments(kind) if not one.positional}
    settings = {key.replace("_", "-"): meaning(key) for key in KEYS if uses(kind, key)}
    every = own | {"config": texts["config"]} | settings
    return {f"--{name}": beginning(text) for name, text in every.items()} | PAGES


def _values(option: str, name: str, commands: Mapping[str, type[Command]]) -> list[str]:
    """Return the values that an option of the command `name` may have; none if any text is
    allowed."""
    if option == "--print-completion":
        return list(SHELLS)
    found: list[Argument] = arguments(commands[name]) if name in commands else []
    own = {f"--{one.options[0]}": one.hint for one in found if not one.positional}
    hint = own.get(option) or KEYS.get(option.removeprefix("--").replace("-", "_"), str)
    choices = [
        choice for one in members(hint) if get_origin(one) is Literal for choice in get_args(one)
    ]
    return [*choices, *["none"] * (option not in own and NoneType in members(hint))]
