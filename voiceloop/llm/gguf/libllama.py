"""Loads llama.cpp's C library and declares the functions of it that voiceloop calls.

The declarations are in llama.toml: those of `include/llama.h` in one build of llama.cpp, `BUILD`.
The library of that build is a part of the package xllamacpp (a binding for Python, which is not
imported), or was compiled on this machine by tools/llama.py from the same sources. Another build
may have other fields in its structures, which the C library would read without noticing. So the
fields' default values are compared before anything else is called.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import tomllib
from collections import deque
from ctypes import POINTER, Structure, c_char_p, c_int32, c_uint64, c_void_p
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from voiceloop.errors import EngineError
from voiceloop.terminal import tell

logger = logging.getLogger(__name__)

BUILD = 11549
"""The number of the build of llama.cpp whose declarations these are."""
PACKAGE = f"xllamacpp==2026.10.{BUILD}"
COMPILED = Path(sys.prefix) / "lib" / f"llama.cpp-{BUILD}"
"""The folder into which tools/llama.py puts the library."""
NAMES = {"darwin": "libllama.dylib", "win32": "llama.dll"}
"""File names of the compiled library by system; `libllama.so` on all others."""
_SPARE = 32
"""Words of 64 bits behind structures that the library fills with defaults: a newer one may write
more fields into them."""
_ERROR = 4
"""The level of llama.cpp's messages about errors, GGML_LOG_LEVEL_ERROR."""
_complaints = deque[str](maxlen=32)
"""The newest messages about errors that were not taken yet."""
LogCallback = ctypes.CFUNCTYPE(None, c_int32, c_char_p, c_void_p)
AbortCallback = ctypes.CFUNCTYPE(None, c_char_p)
_OTHER_TYPES = {"void": None, "log_callback": LogCallback, "abort_callback": AbortCallback}


@cache
def _declarations() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("llama.toml").read_text(encoding="utf-8"))


@cache
def structure(name: str) -> type[Any]:
    """Return the class of the C structure called `name` in llama.toml."""
    fields = [(field, _type(kind)) for field, kind in _declarations()["structures"][name].items()]
    if name in _declarations()["defaults"]:
        fields.append(("spare", c_uint64 * _SPARE))
    return type(name, (Structure,), {"_fields_": fields})


def _type(name: str) -> Any:
    """Return the type of ctypes that llama.toml calls `name`."""
    if name.endswith("*"):
        return POINTER(_type(name[:-1]))
    if name in _declarations()["structures"]:
        return structure(name)
    return _OTHER_TYPES[name] if name in _OTHER_TYPES else getattr(ctypes, f"c_{name}")


def find_library() -> Path | None:
    """Return the library's file: the one that was compiled here, else the package's. None if there
    is neither, and on Windows for the package, whose functions are hidden there."""
    compiled = COMPILED / NAMES.get(sys.platform, "libllama.so")
    if compiled.exists():
        return compiled
    spec = find_spec("xllamacpp")
    if spec is None or spec.origin is None or sys.platform == "win32":
        return None
    return next(Path(spec.origin).parent.glob("xllamacpp*.so"), None)


@cache
def library() -> Any:
    """Return the library, initialised and with its functions declared. `complaints` has its
    messages about errors. Raises EngineError if there is none, or not of this build."""
    file = find_library()
    if file is None:
        raise EngineError("llama.cpp is not installed", f"install it: pip install '{PACKAGE}'")
    if sys.platform == "win32":
        os.add_dll_directory(str(file.parent))
    try:  # the package's library needs OpenMP's, which torch has brought
        lib = _declared(ctypes.CDLL(str(file)), "llama")
    except (OSError, AttributeError) as error:
        raise EngineError(
            f"llama.cpp cannot be loaded: {error}", f"install it anew: pip install '{PACKAGE}'"
        ) from error
    lib.llama_log_set(_log, None)
    lib.ggml_set_abort_callback(_give_up)
    lib.llama_backend_init()
    check(lib.llama_model_default_params(), file)
    check(lib.llama_context_default_params(), file)
    return lib


@cache
def extended(group: str) -> Any:
    """Return the library, with the functions declared that one module alone needs: those of `group`
    in llama.toml."""
    return _declared(library(), group)


def _declared(lib: Any, group: str) -> Any:
    """Declare a group of functions of `lib`, and return it. Raises AttributeError if it lacks one
    of them."""
    for name, (result, *parameters) in _declarations()["functions"][group].items():
        function = getattr(lib, name)
        function.restype, function.argtypes = _type(result), [*map(_type, parameters)]
    return lib


def check(params: Any, file: Path) -> None:
    """Raise EngineError unless `params`, the default values of a structure of the library in
    `file`, are those of `BUILD`."""
    for name, value in _declarations()["defaults"][type(params).__name__].items():
        if getattr(params, name) != value:
            raise EngineError(
                f"llama.cpp in {file} is not build {BUILD}: its structures differ",
                f"install that build: pip install '{PACKAGE}'",
            )


def complaints() -> list[str]:
    """Return and forget the library's newest messages about errors, without function names."""
    taken = [line.partition(": ")[2] for line in _complaints]
    _complaints.clear()
    return taken


@AbortCallback
def _give_up(why: bytes) -> None:
    """End the process with one line. llama.cpp does so by a trace of the stack, when it meets what
    cannot be in an intact file, such as a vocabulary with the same token twice."""
    reason = why.decode("utf-8", "replace").strip().rpartition("/")[2]
    tell(f"voiceloop: llama.cpp cannot go on: {reason}", sys.stderr)
    tell("hint: the model's file may be damaged: download or copy it again", sys.stderr)
    os._exit(2)


@LogCallback
def _log(level: int, text: bytes, _: object) -> None:
    if level == _ERROR:
        _complaints.append(text.decode("utf-8", "replace").strip())
        logger.debug("llama.cpp: %s", _complaints[-1])
