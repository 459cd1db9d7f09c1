"""Chooses the models of `talk` and `serve` where the user has named none.

The two commands take the best preset that has been pulled. If none has been pulled, the user may
pull one now.
If `--llm-server` names a local language-model server, that server replies. All other commands take
the settings as they are. So their results do not depend on which models are on the machine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Literal, TypeVar

from msgspec.structs import replace

from voiceloop.bundled import STARTER_ANSWERS, STARTER_HEARS
from voiceloop.catalog.command import pull_preset
from voiceloop.catalog.names import NO_MODEL, find
from voiceloop.catalog.pulled import (
    absent,
    best_pulled,
    choose,
    named_sections,
    settings_of,
    terminal,
    this_machine,
    wanted,
    way_to,
)
from voiceloop.catalog.store import ModelStore
from voiceloop.errors import ModelNotFound
from voiceloop.languages import installed, missing
from voiceloop.languages.voices import described
from voiceloop.llm.remote.errors import RequestError
from voiceloop.llm.remote.finding import begin_search
from voiceloop.llm.remote.servers import NOWHERE, LocalServer, address, having, pick, read_asked
from voiceloop.settings.config import Config, Given, given_in_settings
from voiceloop.settings.flags import Command, written
from voiceloop.settings.presets import BEST_FIRST, BEST_PULLED, STARTER, Machine
from voiceloop.status import llm_name

OFTEN_WRONG = "the small language model is a quick try, and often wrong"
"""A note for users of the language model of preset mini."""
ELSEWHERE = "openai"
"""The engine for language models that run in a server."""
LLM_KEYS: tuple[str, ...] = ("llm.engine", "llm.base_url", "llm.target")
"""The settings that together name a language model in a server."""


class Choosing(Command, frozen=True, kw_only=True):
    """A command that chooses its models where the user has named none."""

    llm_server: Annotated[str | None, written("NAME")] = None
    """A language-model server of this machine that replies. It is one of `ollama`, `lm-studio`,
    `llama.cpp`, `vllm`, a port or an address, and a model may follow (`ollama/llama3.2`), or the
    name of a model alone. With `none` no server is looked for."""


C = TypeVar("C", bound=Choosing)
Ask = Callable[[str], str] | None
"""A function that shows a text to the user and returns the answer; None without a terminal."""


@dataclass(frozen=True, slots=True)
class ChoiceNotice:
    """The lines that tell the user what was chosen."""

    lines: list[str] = field(default_factory=list[str])
    search: Future[list[LocalServer]] | None = None
    """A search for local servers that runs in the background; None if there is none."""

    def all(self) -> list[str]:
        """Return all lines, with one for each server that was found.

        This waits for the search. Call it after the models were loaded, so the wait is short.
        """
        found = self.search.result() if self.search else []
        return [*self.lines, *(f"{one.told}; --llm-server {one.id} takes it" for one in found)]


def settle(
    command: C,
    *,
    looks: bool,
    machine: Machine | None = None,
    ask: Ask | Literal["terminal"] = "terminal",
) -> tuple[C, ChoiceNotice]:
    """Return the command with its final settings, and a notice of what was chosen. Settings from
    flags and files stay as they are.

    With `looks`, the notice lists the language-model servers of this machine, unless the user has
    named one. If no preset has been pulled, `ask` asks the user which one to pull. `machine` is
    this machine by default.

    If a file names a server that does not answer, voiceloop's own models reply, where they are
    pulled. Raises RequestError without them.

    Raises ConfigError if the user named a server that does not run here. If it runs, a server needs
    a preset, or a recogniser and a voice that the user has named. Raises ModelNotFound without
    them, since the starter's recogniser misunderstands people, and where only a server that was
    found has `llm.target`.
    """
    store, machine = ModelStore(), machine or this_machine()
    given = dict(given_in_settings(command.settings, command.origins))
    notice, server = ChoiceNotice(), None
    if command.llm_server is not None:
        given, server = _with_named_server(command.llm_server, given)
    elif command.settings.llm.engine == ELSEWHERE:
        given = _without_absent(command.settings, given, notice, machine, store)
    elif looks:
        notice = ChoiceNotice(search=begin_search())
    if server:
        notice.lines.append(f"{server.name} replies with {server.models[0]}, at {server.url}")
    _choose_preset(given, notice, store, machine, terminal() if ask == "terminal" else ask)
    settings, origins = settings_of(given)
    if "llm.target" in given and notice.search:
        check_target(settings, notice.search)
    if server and "preset" not in given and not {"asr", "tts"} <= named_sections(given):
        suits = (one for one in machine.recommended() if one is not STARTER)
        names = " ".join(wanted(next(suits, BEST_FIRST[-2]), given))
        raise ModelNotFound(
            f"{server.name} would reply to what the starter hears, which misunderstands people",
            f"pull what hears and speaks: voiceloop models pull {names}",
        )
    return replace(command, settings=settings, origins=origins), notice


def best_settings(
    settings: Config, origins: Mapping[str, str], machine: Machine | None = None
) -> tuple[Config, dict[str, str]]:
    """Return the settings that `talk` and `serve` would choose without asking the user.

    Also return the origin of each setting by dotted key.
    """
    given = dict(given_in_settings(settings, origins))
    if name := best_pulled(given, machine or this_machine(), ModelStore()):
        given["preset"] = name, BEST_PULLED
    return settings_of(given)


def notes(config: Config) -> tuple[str, ...]:
    """Return warnings about the models of `talk` and `serve` for the user."""
    hears = (advised(STARTER_HEARS),) if config.asr.hears_no_people else ()
    answers = (STARTER_ANSWERS,) if config.llm.answers_little else ()
    wrong = (advised(OFTEN_WRONG, "mini"),) if config.llm.often_wrong else ()
    return hears + answers + wrong + missing_packs(config)


def missing_packs(config: Config) -> tuple[str, ...]:
    """Return a warning for each language, of the user and of the voice, whose pack is missing."""
    voice = config.tts.voice or config.tts.model
    spoken = described(voice, voice.rpartition("@")[2]).language
    found = (missing(code, installed()) for code in (config.asr.language, spoken))
    return tuple(filter(None, dict.fromkeys(found)))


@cache
def advised(warning: str, preset: str = STARTER.name, *, chooses: bool = True) -> str:
    """Return the warning about the models of `preset`, and how the user gets the preset that suits
    this machine, unless `preset` is at least as good.

    `chooses` is False for commands that do not choose the best preset that has been pulled.
    """
    best = this_machine().suggested()
    if not best.better(preset):
        return warning
    return f"{warning}; for this machine: {way_to(best, ModelStore(), chooses=chooses)}"


def with_server(given: Given, server: LocalServer, origin: str) -> dict[str, tuple[object, str]]:
    """Return `given` with the settings that let the first model of `server` reply.

    `llm.draft` and `llm.options` in a file were meant for another engine, so they are left out. As
    flags they are kept, so that a later check refuses them. `origin` becomes the origin of the
    settings of the server.
    """
    found = {
        key: (value, where)
        for key, (value, where) in given.items()
        if where == "flag" or not (key == "llm.draft" or key.startswith("llm.options."))
    }
    values = (ELSEWHERE, server.url, server.models[0])
    return found | {key: (value, origin) for key, value in zip(LLM_KEYS, values, strict=True)}


def _with_named_server(
    text: str, given: dict[str, tuple[object, str]]
) -> tuple[dict[str, tuple[object, str]], LocalServer | None]:
    """Apply the option `--llm-server TEXT` to `given`. Return the settings and the named server.

    For `none` the server is None, and a server that a file names is removed from the settings.
    """
    choice = read_asked(text)
    if choice.id == NOWHERE:
        if given.get("llm.engine", ("", ""))[0] != ELSEWHERE:
            return given, None
        stays = {key: one for key, one in given.items() if key not in LLM_KEYS or one[1] == "flag"}
        return stays, None
    server = pick(choice, begin_search(choice.ports).result())
    return with_server(given, server, "--llm-server"), server


def _without_absent(
    settings: Config,
    given: dict[str, tuple[object, str]],
    notice: ChoiceNotice,
    machine: Machine,
    store: ModelStore,
) -> dict[str, tuple[object, str]]:
    """Return `given` without the language-model server that a file names, if it does not answer and
    voiceloop's own models are pulled. Then add a line to `notice`. Otherwise return `given`.

    Raises RequestError if it does not answer and there are no models in its place.
    """
    from voiceloop.llm.remote.chatserver import ChatServer

    own = {key: one for key, one in given.items() if key not in LLM_KEYS}
    if any(given[key][1] == "flag" for key in given.keys() - own):
        return given
    where = address(settings.llm.base_url, os.environ)
    try:
        ChatServer(where, settings.llm.timeout_s).look_up()
    except RequestError as failure:
        named = own.get("preset", (best_pulled(own, machine, store), BEST_PULLED))
        preset = next((one for one in BEST_FIRST if one.name == named[0]), None)
        if failure.kind != "lost" or preset is None or absent(preset, own, store):
            raise
        instead = llm_name(settings_of(own | {"preset": named})[0].llm)
        offered = ", and the page offers it" if where.loopback else ""
        line = f"{failure.message}; meanwhile {instead} replies"
        notice.lines.append(f"{line}. Once it is back, the next start takes it{offered}")
        return own
    return given


def check_target(settings: Config, search: Future[list[LocalServer]]) -> None:
    """Raise ModelNotFound if voiceloop has no model called `llm.target`, and a server of this
    machine has."""
    name = settings.llm.target
    try:
        if settings.llm.engine == "speculative" and name not in NO_MODEL:
            find(name, "llm", make=False)
    except ModelNotFound as error:
        if server := having(name, search.result()):
            raise ModelNotFound(
                f"voiceloop has no model called '{name}', and {server.name} has",
                f"let {server.name} reply: --llm-server {server.id}/{name}",
            ) from error


def _choose_preset(
    given: dict[str, tuple[object, str]],
    notice: ChoiceNotice,
    store: ModelStore,
    machine: Machine,
    ask: Ask,
) -> None:
    """Choose a preset if `given` has none. Add the preset to `given` and a line to `notice`."""
    if "preset" in given:
        return
    named = named_sections(given)
    chosen, why = best_pulled(given, machine, store), "the best of what has been pulled"
    if chosen is None and not named and ask:
        chosen, why = choose(machine, store, ask, pull_preset), "it has just been pulled"
    if chosen:
        given["preset"] = chosen, BEST_PULLED
        notice.lines.insert(0, f"preset {chosen}: {why}")
    elif not named:
        notice.lines.append(f"preset {STARTER.name}: no other that runs here has been pulled")
