"""API keys: which files and values are taken, and that no message shows one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voiceloop.errors import ConfigError
from voiceloop.server.access.keys import LENGTHS, MAX_FILE_BYTES, VARIABLE, Keyring, read_keys

pytestmark = pytest.mark.pure

KEY = "correct-horse-battery-staple"
OTHER = "incorrect-horse-battery-staple"

texts = st.text(max_size=40)
"""Any characters, lone surrogates among them."""


def key_file(folder: Path, content: bytes, mode: int = 0o600) -> Path:
    path = folder / "keys"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def refused(environ: Mapping[str, str], file: Path | None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read_keys(environ, file)
    assert caught.value.hint
    return caught.value


# --- recognising --------------------------------------------------------------------------------


@given(st.sets(texts, min_size=1, max_size=5), texts)
def test_a_ring_knows_its_keys_and_no_others(keys: set[str], offered: str) -> None:
    keys = {key.encode("utf-8", "replace").decode() for key in keys}
    ring = Keyring(keys)
    names = {ring.match(key) for key in keys}
    assert None not in names
    assert len(names) == len(keys)
    assert (ring.match(offered) is not None) == (offered in keys)


def test_a_ring_keeps_no_key_and_its_ids_show_none_of_its_digests() -> None:
    ring = Keyring([KEY])
    kept = repr(vars(ring))
    assert KEY not in kept
    [(digest, name)] = ring._ids.items()
    assert name not in digest.hex()
    assert Keyring([KEY, OTHER]).match(KEY) == name


# --- reading ------------------------------------------------------------------------------------


def test_a_file_holds_one_key_a_line(tmp_path: Path) -> None:
    content = f"# the kitchen\r\n{KEY}\r\n\r\n  {OTHER}  \n#{'x' * 20}\n{KEY}"
    assert read_keys({}, key_file(tmp_path, content.encode())) == [KEY, OTHER, KEY]


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o640, 0o660])
def test_a_group_may_read_the_file(tmp_path: Path, mode: int) -> None:
    assert read_keys({}, key_file(tmp_path, KEY.encode(), mode))


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o602, 0o666, 0o777])
def test_others_may_neither_read_nor_write_the_file(tmp_path: Path, mode: int) -> None:
    path = key_file(tmp_path, KEY.encode(), mode)
    error = refused({}, path)
    assert error.message == f"key file {path} is open to every user of this machine"
    assert error.hint == f"chmod 600 {path}"


def test_a_key_in_both_places_is_refused(tmp_path: Path) -> None:
    error = refused({VARIABLE: KEY}, key_file(tmp_path, OTHER.encode()))
    assert error.message.startswith(f"both {VARIABLE} and the key file")


@pytest.mark.parametrize("value", ["", "  \n"])
def test_an_empty_variable_is_not_taken_for_an_absent_one(value: str) -> None:
    assert refused({VARIABLE: value}, None).message == f"{VARIABLE} is set but empty"


@pytest.mark.parametrize("content", [b"", b"\n\n", b"# none\n", b"#" + KEY.encode()])
def test_a_file_without_a_key_is_refused(tmp_path: Path, content: bytes) -> None:
    path = key_file(tmp_path, content)
    assert refused({}, path).message == f"key file {path} holds no key"


@pytest.mark.parametrize(
    "line",
    [
        f"{KEY} {KEY}",
        f'"{KEY}"',
        f"{KEY}=",
        f"{KEY}/",
        f"{KEY},{KEY}",
        f"k\u00e9y-{KEY}",
        f"\ufeff{KEY}",
        f"{KEY}\0",
        f"{KEY}\x1b[2J",
        f"{KEY}\r{KEY}",
        f"{KEY}\u2028{KEY}",
    ],
)
def test_a_key_is_made_of_what_a_header_and_a_subprotocol_can_carry(
    tmp_path: Path, line: str
) -> None:
    path = key_file(tmp_path, f"{OTHER}\n{line}\n".encode())
    error = refused({}, path)
    assert error.message == f"{path}: line 2 has a character that an API key cannot have"
    assert "horse" not in f"{error.message} {error.hint}"


@pytest.mark.parametrize("length", [1, LENGTHS[0] - 1, LENGTHS[-1] + 1])
def test_a_key_is_neither_guessable_nor_endless(length: int) -> None:
    error = refused({VARIABLE: "k" * length}, None)
    assert error.message == f"{VARIABLE} must have 16 to 256 characters, not {length}"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    path = tmp_path / "absent"
    assert refused({}, path).message == f"cannot read key file {path}: No such file or directory"


def test_a_folder_and_a_pipe_are_no_files_of_keys(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe, 0o600)
    assert refused({}, pipe).message == f"key file {pipe} is not a file"
    assert refused({}, tmp_path).message == f"cannot read key file {tmp_path}: Is a directory"


def test_a_huge_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = key_file(tmp_path, b"#" * (MAX_FILE_BYTES + 1))
    assert refused({}, path).message.endswith(f"is larger than {MAX_FILE_BYTES} bytes")
    assert refused({}, Path("/dev/zero")).message == "key file /dev/zero is not a file"
