"""Reads scenario files. A mistake in a file is reported on one line.

The files are TOML and are checked like configuration files: a wrong key or value raises a
ConfigError with its name, its place and what was expected. This module runs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import msgspec

from tests.support.scenario import SCRIPTED, Scenario, ScriptedAnswer, UserSound
from tests.support.scripted import canonical
from voiceloop.asr.transcript import normalise
from voiceloop.errors import ConfigError
from voiceloop.settings.config import KEYS, SECTIONS, assembled, flatten, given_in, toml
from voiceloop.settings.schema import TOML, Mistake, nearest, one_line, read, suggestion
from voiceloop.turn.resources import OVERLAPS

HINT = "tests/support/scenario.py describes scenarios"
WORDS = replace(TOML, null="")
_OWN = {name for name in Scenario.__struct_fields__ if name != "config"}


def load_scenario(path: Path) -> Scenario:
    """Read a scenario. Raises ConfigError for a mistake in the file."""
    table = toml(path, HINT)
    given = {name: table.pop(name) for name in list(table) if name in KEYS or name in SECTIONS}
    config = assembled(flatten(SCRIPTED) | given_in(given, path))
    for name in table:
        if name not in _OWN:
            near = nearest(name, {*_OWN, *SECTIONS, *KEYS})
            hint = f"did you mean '{near}'?" if near else HINT
            raise ConfigError(f"{path}: {one_line(name)} is no key", hint)
    try:
        scenario: Scenario = read(Scenario, table, WORDS)
    except Mistake as mistake:
        steps = [f": {one_line(s)}" if isinstance(s, str) else f" {s + 1}" for s in mistake.path]
        raise ConfigError(f"{path}{''.join(steps)} {mistake}", mistake.hint or HINT) from None
    _check(scenario, path)
    return msgspec.structs.replace(scenario, config=config)


def _check(scenario: Scenario, path: Path) -> None:
    """Check the rules that concern more than one key. Raises ConfigError."""
    if scenario.overlap not in OVERLAPS:
        raise ConfigError(
            f"{path}: there is no overlap '{scenario.overlap}'",
            suggestion(scenario.overlap, OVERLAPS),
        )
    if not scenario.user:
        raise ConfigError(f"{path}: nobody says anything", "write what the user says as [[user]]")
    latest = 0.0
    for number, sound in enumerate(scenario.user, start=1):
        where = f"{path}: user {number}"
        _check_sound(sound, where)
        if sound.at is not None and not latest <= sound.at <= scenario.limit_s:
            hint = f"it comes after {latest:g} s and before limit_s, {scenario.limit_s:g} s"
            raise ConfigError(f"{where}: at is {sound.at:g} s, out of order", hint)
        latest = latest if sound.at is None else sound.at
    _check_replies(scenario.reply, path)


def _check_sound(sound: UserSound, where: str) -> None:
    words = {normalise(word) for word in sound.words()}
    if bool(words) == bool(sound.noise_s):
        raise ConfigError(f"{where} needs either words in text, or noise_s", HINT)
    if (sound.at is None) == (sound.after is None):
        raise ConfigError(f"{where} needs either at, or after", HINT)
    if sound.after is None and sound.delay_s:
        raise ConfigError(f"{where}: delay_s goes with after", "add it to at instead")
    if sound.turn and sound.after not in ("sound", "reply"):
        raise ConfigError(f"{where}: turn goes with after = 'sound' or 'reply'", HINT)
    for word in sound.misheard:
        if normalise(word) not in words:
            near = nearest(word, sound.words())
            hint = f"did you mean '{near}'?" if near else HINT
            raise ConfigError(f"{where}: misheard: '{word}' is not in text", hint)


def _check_replies(replies: Iterable[ScriptedAnswer], path: Path) -> None:
    known: set[str | None] = set()
    for number, answer in enumerate(replies, start=1):
        where = f"{path}: reply {number}"
        if (answer.then or answer.arguments) and not answer.calls:
            raise ConfigError(f"{where}: then and arguments go with calls", HINT)
        to = None if answer.to is None else canonical(answer.to)
        if to in known:
            raise ConfigError(f"{where} is a second one to the same words", "leave one of them out")
        known.add(to)
