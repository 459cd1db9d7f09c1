"""Reads the usual kind of tokenizer without transformers, whose import takes a second or more.

A file of the `tokenizers` library describes a tokenizer fully, and a chat template is a text for
jinja. `read_tokenizer` reads a folder that has these two. If transformers would change the
tokenizer, `read_tokenizer` does not read it, and transformers must. This module knows no models.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

from voiceloop.llm.model.checkpoint import read_json

_AS_WRITTEN = ("llama", "qwen3")
"""Model types for which transformers uses a general tokenizer exactly as its files describe it."""
_GENERAL = ("PreTrainedTokenizerFast", "TokenizersBackend")


class Tokenizer:
    """A tokenizer with a chat template. It has the methods of transformers' tokenizers that
    voiceloop calls."""

    def __init__(self, backend: Backend, template: str | None, named: Mapping[str, str]) -> None:
        """`template` is the chat template; None if there is none. `named` maps names to special
        tokens, e.g. `eos_token` to `<|im_end|>`."""
        backend.no_truncation()
        backend.no_padding()
        self._tokenizer = backend
        self.special_tokens_map = dict(named)
        self.chat_template = template
        ends = named.get("eos_token")
        self.eos_token_id = None if ends is None else backend.token_to_id(ends)

    @property
    def added_tokens_decoder(self) -> dict[int, AddedToken]:
        """The added tokens by id, e.g. `<|im_end|>`. Most are not pieces of text."""
        return self._tokenizer.get_added_tokens_decoder()

    def get_vocab(self) -> dict[str, int]:
        """Return the ids of all tokens, by text."""
        return self._tokenizer.get_vocab()

    def encode(
        self, text: str, *, add_special_tokens: bool = True, verbose: bool = True
    ) -> list[int]:
        """Return the token ids of `text`, however long it is. `verbose` has no effect here."""
        return self._tokenizer.encode(text, add_special_tokens=add_special_tokens).ids

    def decode(
        self,
        ids: Sequence[int],
        *,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool = False,
    ) -> str:
        """Return the text of `ids`, with spaces as they are."""
        return self._tokenizer.decode(ids, skip_special_tokens=skip_special_tokens)


def without(backend: Backend, tokens: Collection[int]) -> Backend:
    """Return the tokenizer without the added tokens whose ids are in `tokens`."""
    description = json.loads(backend.to_str())
    description["added_tokens"] = [
        one for one in description["added_tokens"] if one["id"] not in tokens
    ]
    vocab = description["model"].get("vocab")
    if isinstance(vocab, dict):
        numbered = cast("dict[str, int]", vocab)
        kept = {text: index for text, index in numbered.items() if index not in tokens}
        description["model"]["vocab"] = kept
    return Backend.from_str(json.dumps(description))


def read_tokenizer(folder: Path, model_type: str) -> Tokenizer | None:
    """Read the tokenizer in `folder` of a model of type `model_type`. Return None if transformers
    must read it.

    Raises ValueError or OSError for files that cannot be read.
    """
    config = read_json(folder / "tokenizer_config.json")
    file, template = folder / "tokenizer.json", _template(folder, config)
    if not (
        model_type in _AS_WRITTEN
        and file.is_file()
        and config.get("tokenizer_class") in _GENERAL
        and not config.keys() & {"auto_map", "fix_mistral_regex", "init_inputs"}
        and not config.get("split_special_tokens")
        and isinstance(template, str | None)
    ):
        return None
    # If the settings list no tokens, these files of earlier versions may add some.
    listed = config.get("added_tokens_decoder")
    older = ("added_tokens.json", "special_tokens_map.json")
    if listed is None and any((folder / name).exists() for name in older):
        return None
    backend = _backend(file)
    added = backend.get_added_tokens_decoder()
    own = {str(index): _fields(token) for index, token in added.items()}
    named = {
        key: _content(value)
        for key, value in config.items()
        if key.endswith("_token") and isinstance(value, str | dict)
    }
    special = {*named.values(), *_further(config)}
    contents = {token.content for token in added.values()}
    if not (listed or {}).items() <= own.items() or not special <= contents:
        return None
    return Tokenizer(backend, template, named)


def _backend(file: Path) -> Backend:
    try:
        return Backend.from_file(str(file))
    except Exception as error:  # the library raises nothing narrower
        raise ValueError(f"{file.name} cannot be read: {error}") from error


def _template(folder: Path, config: Mapping[str, Any]) -> object:
    """Return the chat template as a string, or None if there is none. If there are several
    templates, return an object of another type."""
    if (folder / "additional_chat_templates").exists():
        return ()
    file = folder / "chat_template.jinja"
    return file.read_text(encoding="utf-8") if file.is_file() else config.get("chat_template")


def _fields(token: AddedToken) -> dict[str, object]:
    """Return the fields of a token as tokenizer_config.json lists them."""
    names = ("content", "lstrip", "normalized", "rstrip", "single_word", "special")
    return {name: getattr(token, name) for name in names}


def _further(config: Mapping[str, Any]) -> set[str]:
    """Return the texts of the special tokens that `config` lists without the name of their use, in
    any form that it may use."""
    found = list[Any]()
    for key in ("extra_special_tokens", "additional_special_tokens"):
        several = config.get(key) or ()
        found += several.values() if isinstance(several, dict) else several
    return {_content(value) for value in found if isinstance(value, str | dict)}


def _content(token: str | Mapping[str, Any]) -> str:
    return token if isinstance(token, str) else str(token["content"])
