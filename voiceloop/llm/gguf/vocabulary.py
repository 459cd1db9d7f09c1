"""The tokenizer of a GGUF file, which is llama.cpp's, and its chat template."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_int32, create_string_buffer
from functools import cached_property
from typing import TYPE_CHECKING

from tokenizers import AddedToken

from voiceloop.llm.gguf.libllama import library

if TYPE_CHECKING:
    from voiceloop.llm.gguf.file import GgufModel

_CONTROL, _USER_DEFINED = 1 << 3, 1 << 4
"""Attributes of tokens: LLAMA_TOKEN_ATTR_CONTROL and LLAMA_TOKEN_ATTR_USER_DEFINED."""
_SENTENCEPIECE = 1
"""The type of vocabularies that begin a text with a space: LLAMA_VOCAB_TYPE_SPM."""
_NAMED = ("bos", "eos", "pad", "sep", "mask")
"""Special tokens that chat templates refer to by name."""
_PIECE = 256
"""The size of the buffer for a token's text, in bytes, that is tried first."""


class GgufTokenizer:
    """A tokenizer with a chat template. It has the methods of transformers' tokenizers that
    voiceloop calls."""

    def __init__(self, model: GgufModel) -> None:
        self._model = model  # this keeps its vocabulary
        self._vocab = model.vocabulary
        self._strips = (
            library().llama_vocab_type(self._vocab) == _SENTENCEPIECE
            and model.setting("tokenizer.ggml.add_space_prefix") != "false"
        )
        self._pieces = dict[int, bytes]()
        """Cached texts of tokens. A text may end within a character."""

    @cached_property
    def chat_template(self) -> str | dict[str, str] | None:
        """The chat template; if the file has one for tools too, both by name; None without any."""
        found = {"default": self._template(None), "tool_use": self._template(b"tool_use")}
        if found["default"] is None:
            return None
        named = {name: text for name, text in found.items() if text is not None}
        return named if len(named) > 1 else named["default"]

    @cached_property
    def special_tokens_map(self) -> dict[str, str]:
        """The texts of special tokens by the names that templates use, e.g. `bos_token`."""
        lib = library()
        ids = {name: getattr(lib, f"llama_vocab_{name}")(self._vocab) for name in _NAMED}
        return {f"{name}_token": self._text(token) for name, token in ids.items() if token >= 0}

    @cached_property
    def eos_token_id(self) -> int | None:
        """The token that ends a text."""
        token = library().llama_vocab_eos(self._vocab)
        return token if token >= 0 else None

    @cached_property
    def ends(self) -> frozenset[int]:
        """All tokens with which the model may end a reply, as the file and llama.cpp say."""
        ends = library().llama_vocab_is_eog
        return frozenset(token for token in range(self._model.rows) if ends(self._vocab, token))

    @cached_property
    def added_tokens_decoder(self) -> dict[int, AddedToken]:
        """The tokens that are no pieces of text by id, e.g. `<|im_end|>`. Those that steer the
        model are special. llama.cpp's converter does not call all of Gemma 4's so: they are told by
        `<|` and `|>`."""
        attributes = library().llama_vocab_get_attr
        found = dict[int, AddedToken]()
        for token in range(self._model.rows):
            attribute = attributes(self._vocab, token)
            if attribute & (_CONTROL | _USER_DEFINED):
                text = self._text(token)
                steers = attribute & _CONTROL or "<|" in text or "|>" in text
                found[token] = AddedToken(text, special=bool(steers))
        return found

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {self._text(token): token for token in range(self._model.rows)}

    def get_vocab(self) -> dict[str, int]:
        """Return the ids of all tokens, by their text in the vocabulary, such as `Ġthe`."""
        return self._ids

    def encode(
        self, text: str, *, add_special_tokens: bool = True, verbose: bool = True
    ) -> list[int]:
        """Return the token ids of `text`, however long it is. `verbose` has no effect here."""
        data = text.encode("utf-8", "replace")
        room = len(data) + 1
        while True:
            tokens = (c_int32 * room)()
            given = self._vocab, data, len(data), tokens, room, add_special_tokens, True
            count = library().llama_tokenize(*given)
            if count >= 0:
                return tokens[:count]
            room = -count

    def decode(
        self,
        ids: Sequence[int],
        *,
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool = False,
    ) -> str:
        """Return the text of `ids`, with spaces as they are."""
        if skip_special_tokens:
            added = self.added_tokens_decoder
            ids = [token for token in ids if not (token in added and added[token].special)]
        text = b"".join(map(self._piece, ids)).decode("utf-8", "replace")
        return text.removeprefix(" ") if self._strips else text

    def _piece(self, token: int) -> bytes:
        if token not in self._pieces:
            length = -_PIECE
            while length < 0:
                size = -length
                found = create_string_buffer(size)
                length = library().llama_token_to_piece(self._vocab, token, found, size, 0, True)
                self._pieces[token] = found.raw[: max(length, 0)]
        return self._pieces[token]

    def _text(self, token: int) -> str:
        return library().llama_vocab_get_text(self._vocab, token).decode("utf-8", "replace")

    def _template(self, name: bytes | None) -> str | None:
        text = library().llama_model_chat_template(self._model.handle, name) or b""
        # For some files without a template, llama.cpp returns the name of one.
        return text.decode("utf-8", "replace") if b"{" in text else None
