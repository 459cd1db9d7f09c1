"""Loads llama.cpp's C library and declares the functions of it that voiceloop calls.

The declarations are those of `include/llama.h` in one build of llama.cpp, `BUILD`. The library of
that build is a part of the package xllamacpp (a binding for Python, which is not imported), or was
compiled on this machine by tools/llama.py from the same sources. Another build may have other
fields in its structures, which the C library would read without noticing. So the fields' default
values are compared before anything else is called.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from ctypes import (
    POINTER,
    Structure,
    c_bool,
    c_char_p,
    c_float,
    c_int8,
    c_int32,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
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
"""Words of 64 bits behind each structure, into which a newer library may write more fields."""
_ERROR = 4
"""The level of llama.cpp's messages about errors, GGML_LOG_LEVEL_ERROR."""


class ModelParams(Structure):
    """The settings for loading a model: `struct llama_model_params`."""

    _fields_: Sequence[Any] = [
        ("devices", c_void_p),
        ("tensor_buft_overrides", c_void_p),
        ("n_gpu_layers", c_int32),
        ("split_mode", c_int32),
        ("load_mode", c_int32),
        ("lazy_mode", c_int32),
        ("main_gpu", c_int32),
        ("tensor_split", c_void_p),
        ("progress_callback", c_void_p),
        ("progress_callback_user_data", c_void_p),
        ("kv_overrides", c_void_p),
        ("vocab_only", c_bool),
        ("check_tensors", c_bool),
        ("use_extra_bufts", c_bool),
        ("no_host", c_bool),
        ("no_alloc", c_bool),
        ("load_mtp", c_bool),
        ("spare", c_uint64 * _SPARE),
    ]


class ContextParams(Structure):
    """The settings of a context: `struct llama_context_params`."""

    _fields_: Sequence[Any] = [
        ("n_ctx", c_uint32),
        ("n_batch", c_uint32),
        ("n_ubatch", c_uint32),
        ("n_seq_max", c_uint32),
        ("n_rs_seq", c_uint32),
        ("n_outputs_max", c_uint32),
        ("n_outputs_max_per_seq", c_uint32),
        ("n_threads", c_int32),
        ("n_threads_batch", c_int32),
        ("ctx_type", c_int32),
        ("rope_scaling_type", c_int32),
        ("pooling_type", c_int32),
        ("attention_type", c_int32),
        ("flash_attn_type", c_int32),
        ("rope_freq_base", c_float),
        ("rope_freq_scale", c_float),
        ("yarn_ext_factor", c_float),
        ("yarn_attn_factor", c_float),
        ("yarn_beta_fast", c_float),
        ("yarn_beta_slow", c_float),
        ("yarn_orig_ctx", c_uint32),
        ("defrag_thold", c_float),
        ("cb_eval", c_void_p),
        ("cb_eval_user_data", c_void_p),
        ("type_k", c_int32),
        ("type_v", c_int32),
        ("moe_cache_size", c_size_t),
        ("abort_callback", c_void_p),
        ("abort_callback_data", c_void_p),
        ("embeddings", c_bool),
        ("offload_kqv", c_bool),
        ("no_perf", c_bool),
        ("op_offload", c_bool),
        ("swa_full", c_bool),
        ("kv_unified", c_bool),
        ("samplers", c_void_p),
        ("n_samplers", c_size_t),
        ("ctx_other", c_void_p),
        ("spare", c_uint64 * _SPARE),
    ]


class LlamaBatch(Structure):
    """The rows of one pass: `struct llama_batch`."""

    _fields_: Sequence[Any] = [
        ("n_tokens", c_int32),
        ("token", POINTER(c_int32)),
        ("embd", POINTER(c_float)),
        ("pos", POINTER(c_int32)),
        ("n_seq_id", POINTER(c_int32)),
        ("seq_id", POINTER(POINTER(c_int32))),
        ("logits", POINTER(c_int8)),
    ]


_USUAL = {
    "model": {"n_gpu_layers": -1, "use_extra_bufts": True, "vocab_only": False, "no_alloc": False},
    "context": {
        "n_batch": 2048,
        "n_seq_max": 1,
        "rope_scaling_type": -1,
        "pooling_type": -1,
        "attention_type": -1,
        "yarn_ext_factor": -1.0,
        "type_k": 1,
        "type_v": 1,
        "embeddings": False,
        "offload_kqv": True,
        "op_offload": True,
    },
}
"""Default values by which the structures are known."""

_complaints = deque[str](maxlen=32)
"""The newest messages about errors that were not taken yet."""
LogCallback = ctypes.CFUNCTYPE(None, c_int32, c_char_p, c_void_p)
AbortCallback = ctypes.CFUNCTYPE(None, c_char_p)

_TEXT = c_void_p, c_char_p, c_int32
_STATE = c_size_t, c_void_p, c_char_p, c_size_t, c_int32, c_uint32
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "ggml_set_abort_callback": (c_void_p, AbortCallback),
    "llama_backend_init": (None,),
    "llama_log_set": (None, LogCallback, c_void_p),
    "llama_print_system_info": (c_char_p,),
    "llama_supports_gpu_offload": (c_bool,),
    "llama_model_default_params": (ModelParams,),
    "llama_model_load_from_file": (c_void_p, c_char_p, ModelParams),
    "llama_model_free": (None, c_void_p),
    "llama_model_is_recurrent": (c_bool, c_void_p),
    "llama_model_is_hybrid": (c_bool, c_void_p),
    "llama_model_has_encoder": (c_bool, c_void_p),
    "llama_model_is_diffusion": (c_bool, c_void_p),
    "llama_model_meta_val_str": (c_int32, c_void_p, c_char_p, c_char_p, c_size_t),
    "llama_model_chat_template": (c_char_p, c_void_p, c_char_p),
    "llama_model_n_embd": (c_int32, c_void_p),
    "llama_model_n_layer_nextn": (c_int32, c_void_p),
    "llama_model_n_params": (c_uint64, c_void_p),
    "llama_model_size": (c_uint64, c_void_p),
    "llama_model_get_vocab": (c_void_p, c_void_p),
    "llama_vocab_n_tokens": (c_int32, c_void_p),
    "llama_vocab_type": (c_int32, c_void_p),
    "llama_vocab_get_text": (c_char_p, c_void_p, c_int32),
    "llama_vocab_get_attr": (c_int32, c_void_p, c_int32),
    "llama_vocab_is_eog": (c_bool, c_void_p, c_int32),
    "llama_vocab_bos": (c_int32, c_void_p),
    "llama_vocab_eos": (c_int32, c_void_p),
    "llama_vocab_pad": (c_int32, c_void_p),
    "llama_vocab_sep": (c_int32, c_void_p),
    "llama_vocab_mask": (c_int32, c_void_p),
    "llama_tokenize": (c_int32, *_TEXT, POINTER(c_int32), c_int32, c_bool, c_bool),
    "llama_token_to_piece": (c_int32, c_void_p, c_int32, c_char_p, c_int32, c_int32, c_bool),
    "llama_context_default_params": (ContextParams,),
    "llama_init_from_model": (c_void_p, c_void_p, ContextParams),
    "llama_free": (None, c_void_p),
    "llama_get_memory": (c_void_p, c_void_p),
    "llama_memory_seq_rm": (c_bool, c_void_p, c_int32, c_int32, c_int32),
    "llama_state_seq_get_size_ext": (c_size_t, c_void_p, c_int32, c_uint32),
    "llama_state_seq_get_data_ext": _STATE,
    "llama_state_seq_set_data_ext": _STATE,
    "llama_memory_clear": (None, c_void_p, c_bool),
    "llama_set_n_threads": (None, c_void_p, c_int32, c_int32),
    "llama_batch_init": (LlamaBatch, c_int32, c_int32, c_int32),
    "llama_batch_free": (None, LlamaBatch),
    "llama_decode": (c_int32, c_void_p, LlamaBatch),
    "llama_get_logits": (POINTER(c_float), c_void_p),
    "llama_get_embeddings": (POINTER(c_float), c_void_p),
}
"""The functions' results and parameters."""


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
        lib = declare(ctypes.CDLL(str(file)), _FUNCTIONS)
    except (OSError, AttributeError) as error:
        raise EngineError(
            f"llama.cpp cannot be loaded: {error}", f"install it anew: pip install '{PACKAGE}'"
        ) from error
    lib.llama_log_set(_log, None)
    lib.ggml_set_abort_callback(_give_up)
    lib.llama_backend_init()
    check(lib.llama_model_default_params(), lib.llama_context_default_params(), file)
    return lib


def declare(lib: Any, functions: Mapping[str, tuple[Any, ...]]) -> Any:
    """Declare the results and parameters of `functions` of `lib`, and return `lib`. Raises
    AttributeError if it lacks one of them."""
    for name, (result, *parameters) in functions.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, parameters
    return lib


def check(model: ModelParams, context: ContextParams, file: Path) -> None:
    """Raise EngineError unless the default values of the library in `file` are those of `BUILD`."""
    for params, usual in ((model, _USUAL["model"]), (context, _USUAL["context"])):
        for name, value in usual.items():
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
