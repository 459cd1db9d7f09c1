"""What llama.cpp reads of GGUF files: tokens, templates, sizes, and what is wrong with a file."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from unicodedata import normalize

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from tests.ggufs import (
    COMPOSED,
    CONTROL,
    PIECES,
    PUBLISHED,
    TEMPLATE,
    network,
    tokenizer,
    write_gguf,
)
from voiceloop.catalog.names import find
from voiceloop.errors import EngineError, ModelCorrupt
from voiceloop.llm.gguf.file import GgufModel, gguf_in
from voiceloop.llm.model.loading import LoadedModel, load_model

pytestmark = pytest.mark.models

CPU = torch.device("cpu")
APPROXIMATE = ("tekken", "gpt-4o")
"""Ways of splitting that llama.cpp follows for ASCII alone: it knows no case of other letters."""

KNOWN = st.characters(exclude_categories=("Cn", "Cs"))
"""Characters that libraries of any age agree about."""


def loaded(file: Path) -> LoadedModel:
    return load_model(str(file), CPU, None)


def written(path: Path, pre: str | None = "smollm", **more: object) -> tuple[Path, Tokenizer]:
    words = tokenizer(pre if pre in PUBLISHED else "gpt-2")
    write_gguf(path, network(words.get_vocab_size()), words, pre, **more)  # pyright: ignore[reportArgumentType]
    return path, words


# --- tokens -------------------------------------------------------------------------------------


@pytest.mark.parametrize("pre", PUBLISHED)
def test_text_is_split_as_the_published_tokenizer_splits_it(tmp_path: Path, pre: str) -> None:
    file, words = written(tmp_path / "small.gguf", pre)
    found = loaded(file).tokenizer

    @settings(max_examples=300)
    @given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(KNOWN, max_size=4)), max_size=12))
    def same(pieces: list[str]) -> None:
        text = "".join(pieces).encode("utf-8", "ignore").decode()
        if pre in COMPOSED:  # llama.cpp composes nothing
            text = normalize("NFC", text)
        if pre in APPROXIMATE:
            text = text.encode("ascii", "ignore").decode()
        ids = words.encode(text).ids
        assert found.encode(text, add_special_tokens=False) == ids
        assert found.decode(ids) == words.decode(ids)

    same()
    turn = "<|im_start|>user\nHi<|im_end|>\n"
    ids = words.encode(turn).ids
    assert found.encode(turn, add_special_tokens=False) == ids
    assert found.decode(ids) == turn
    assert found.decode(ids, skip_special_tokens=True) == "user\nHi\n"


def test_the_tokenizer_says_what_the_file_says(tmp_path: Path) -> None:
    file, words = written(tmp_path / "small.gguf")
    found = loaded(file).tokenizer
    assert found.get_vocab() == words.get_vocab()
    added = {token.content: token.special for token in found.added_tokens_decoder.values()}
    assert added == dict.fromkeys(CONTROL, True)
    assert found.chat_template == TEMPLATE
    named = found.special_tokens_map
    assert (named["bos_token"], named["eos_token"]) == ("<|im_start|>", "<|im_end|>")


@pytest.mark.parametrize("ends", [{}, {"eot": 1}, {"eot": 1, "eom": 5}])
def test_every_token_that_a_file_says_ends_a_reply_ends_one(
    ends: dict[str, int], tmp_path: Path
) -> None:
    file, _ = written(tmp_path / "small.gguf", "gpt-2", **ends)
    found = loaded(file)
    assert found.eos == {0, 2, *ends.values()}  # llama.cpp knows <|endoftext|>
    assert found.tokenizer.eos_token_id == 2


def rewritten(file: Path, to: Path, change: Callable[[Any], object], **named: object) -> Path:
    """Copy a GGUF file, with other contents of the fields whose names end with those of `named`.
    Then `change` gets the writer."""
    import gguf

    reader, out = gguf.GGUFReader(file), gguf.GGUFWriter(to, "llama")
    for field in reader.fields.values():
        if not field.name.startswith(("GGUF.", "general.architecture", "tokenizer.chat_template")):
            kind = field.types[0]
            sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            contents = named.get(field.name.rpartition(".")[2], field.contents())
            out.add_key_value(field.name, contents, kind, sub_type=sub)
    change(out)
    for tensor in reader.tensors:
        out.add_tensor(tensor.name, tensor.data)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return to


def test_a_template_for_tools_is_found_by_name(tmp_path: Path) -> None:
    plain, _ = written(tmp_path / "plain.gguf")
    named = {"default": "{{ 1 }}", "tool_use": "{{ 2 }}"}
    both = [{"name": name, "template": text} for name, text in named.items()]
    file = rewritten(plain, tmp_path / "both.gguf", lambda out: out.add_chat_template(both))
    assert loaded(file).tokenizer.chat_template == named


def test_a_mark_is_special_though_a_converter_made_it_visible(tmp_path: Path) -> None:
    """As those of Gemma 4 for thoughts and calls are."""
    plain, words = written(tmp_path / "plain.gguf")
    types = [4 if token == 2 else 3 if token < 2 else 1 for token in range(len(words.get_vocab()))]
    visible = tmp_path / "visible.gguf"
    rewritten(plain, visible, lambda out: out.add_chat_template(TEMPLATE), token_type=types)
    added = loaded(visible).tokenizer.added_tokens_decoder
    assert {token.content: token.special for token in added.values()} == dict.fromkeys(
        CONTROL, True
    )


# --- sizes --------------------------------------------------------------------------------------


def test_sizes_are_those_of_the_file(tmp_path: Path) -> None:
    file, _ = written(tmp_path / "small.gguf")
    model = loaded(file)
    assert model.shape == ("llama", 2, 64, 96, 4, 2)
    assert model.longest == 128
    assert isinstance(model.model, GgufModel)
    row = 2 * 2 * (2 * 16) * 2  # layers, keys and values, groups times numbers, bytes
    assert model.model.row_bytes == row


def test_a_folder_with_one_file_is_that_file(tmp_path: Path) -> None:
    file, _ = written(tmp_path / "small.gguf")
    assert gguf_in(tmp_path) == gguf_in(file) == file
    assert find(str(file), "llm") == file
    (tmp_path / "other.gguf").write_bytes(b"")
    assert gguf_in(tmp_path) is None


# --- what is wrong with a file ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["nobody", "mamba9", "llama-of-somebody", ""])
def test_a_kind_of_model_that_is_not_known_is_called_so(kind: str, tmp_path: Path) -> None:
    file, _ = written(tmp_path / "small.gguf", "gpt-2", architecture=kind)
    with pytest.raises(EngineError, match=f"not known to this llama.cpp: .*'{kind}'") as caught:
        loaded(file)
    assert "damaged" not in caught.value.message


def test_an_unknown_way_of_splitting_is_called_so(tmp_path: Path) -> None:
    file, _ = written(tmp_path / "small.gguf", "somebody-elses")
    with pytest.raises(EngineError, match=r"not known to this llama\.cpp: .*'somebody-elses'"):
        loaded(file)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("eagle3", "is a draft for another model"),
        ("gemma4-assistant", "is a draft for another model"),
        ("dream", "writes all words of a reply at once"),
        ("t5encoder", "is an encoder"),
        ("clip", "is a projector"),
        ("bert", "reads in both directions"),
    ],
)
def test_what_is_no_chat_model_is_refused_by_what_it_is(
    kind: str, why: str, tmp_path: Path
) -> None:
    """The small files have none of these models' weights, so only their settings are read."""
    more = {"bert.attention.causal": False} if kind == "bert" else {}
    file, _ = written(tmp_path / "small.gguf", "gpt-2", architecture=kind, settings=more)
    with pytest.raises(EngineError, match=why) as caught:
        GgufModel(file, "small", weights=False)
    assert "damaged" not in caught.value.message


@pytest.mark.parametrize("body", [b"", b"GGUF", b"not a model" * 100])
def test_a_file_that_is_none_is_one_line(body: bytes, tmp_path: Path) -> None:
    (tmp_path / "bad.gguf").write_bytes(body)
    with pytest.raises(ModelCorrupt, match=r"cannot read the model '.*bad.gguf'") as caught:
        loaded(tmp_path / "bad.gguf")
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("part", [0.2, 0.5, 0.99])
def test_a_file_that_was_cut_short_is_one_line(part: float, tmp_path: Path) -> None:
    file, _ = written(tmp_path / "small.gguf")
    file.write_bytes(file.read_bytes()[: int(part * file.stat().st_size)])
    with pytest.raises(ModelCorrupt, match="cannot read the model"):
        loaded(file)


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def header(*settings: bytes, tensors: int = 0, count: int | None = None) -> bytes:
    told = struct.pack("<IQQ", 3, tensors, len(settings) if count is None else count)
    return b"GGUF" + told + b"".join(settings)


def array(name: str, kind: int, count: int, body: bytes = b"") -> bytes:
    return text(name) + struct.pack("<IIQ", 9, kind, count) + body


ENORMOUS = {
    **{f"an array of type {kind}": header(array("a", kind, 2**60)) for kind in range(13)},
    "an array of 2**64 - 1": header(array("a", 0, 2**64 - 1)),
    "an array that the file is too short for": header(array("a", 0, 1000, bytes(999))),
    "a long text in an array": header(array("a", 8, 1, struct.pack("<Q", 2**63))),
    "a long text": header(text("a") + struct.pack("<IQ", 8, 2**60)),
    "a long name": header(struct.pack("<Q", 2**60)),
    "settings": header(count=2**60),
    "tensors": header(tensors=2**60),
    "an unknown type": header(text("a") + struct.pack("<I", 99)),
    "half a count": b"GGUF" + bytes(9),
}


@pytest.mark.parametrize("name", ENORMOUS)
def test_what_a_file_is_too_short_for_is_one_line_at_once(name: str, tmp_path: Path) -> None:
    """llama.cpp trusts no length that a file gives: a newer one that does would end here."""
    (tmp_path / "small.gguf").write_bytes(ENORMOUS[name])
    with pytest.raises(ModelCorrupt) as caught:
        loaded(tmp_path / "small.gguf")
    assert "\n" not in caught.value.message


OPENING = """
import sys
from collections.abc import Callable
from pathlib import Path
from voiceloop.errors import EngineError
from voiceloop.llm.gguf.file import GgufModel
from voiceloop.llm.gguf.vocabulary import GgufTokenizer
for name in sys.stdin.read().splitlines():
    print(name, flush=True)
    try:
        GgufTokenizer(GgufModel(Path(name), "small")).get_vocab()
    except (EngineError, MemoryError) as error:
        assert str(error) and "\\n" not in str(error)
"""


def test_damaged_files_are_read_or_refused_or_end_the_process_with_a_line(tmp_path: Path) -> None:
    """What llama.cpp only asserts ends the process: of damages these are a few in a thousand."""
    whole, chance = written(tmp_path / "small.gguf")[0].read_bytes(), Random(5)
    bodies = list[bytes]()
    for _ in range(150):
        body = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            body[chance.randrange(4, 8000)] = chance.randrange(256)
        bodies.append(bytes(body))
    left = [str(tmp_path / f"{index}.gguf") for index in range(len(bodies))]
    for name, body in zip(left, bodies, strict=True):
        Path(name).write_bytes(body)
    while left:
        done = subprocess.run(
            [sys.executable, "-c", OPENING], input="\n".join(left), capture_output=True, text=True
        )
        if done.returncode == 0:
            break
        assert done.returncode == 2, done.stderr
        assert done.stderr.startswith("voiceloop: llama.cpp cannot go on: ")
        assert len(done.stderr.splitlines()) == 2
        left = left[len(done.stdout.splitlines()) :]


def test_a_vocabulary_with_a_token_twice_ends_the_process_with_a_line(tmp_path: Path) -> None:
    file, _ = written(tmp_path / "small.gguf")
    file.write_bytes(file.read_bytes().replace(text("7"), text("8"), 1))
    done = subprocess.run(
        [sys.executable, "-c", OPENING], input=str(file), capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("voiceloop: llama.cpp cannot go on: ")
    assert "hint: the model's file may be damaged" in done.stderr
