"""The C library of llama.cpp is the build whose structures are declared, or is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import lacking
from voiceloop.errors import EngineError
from voiceloop.llm.gguf import libllama
from voiceloop.llm.gguf.libllama import BUILD, PACKAGE, check, find_library, library, structure

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def file() -> Path:
    found = find_library()
    if found is None:
        lacking("llama.cpp is not installed: pip install voiceloop")
    return found


def test_the_declared_structures_are_the_librarys(file: Path) -> None:
    check(library().llama_model_default_params(), file)
    context = library().llama_context_default_params()
    check(context, file)
    assert context.n_ubatch == 512 and context.yarn_beta_slow == context.yarn_beta_fast == -1.0
    assert (context.n_samplers, context.samplers, context.ctx_other) == (0, None, None)


@pytest.mark.parametrize("name", ["offload_kqv", "type_k", "yarn_ext_factor", "n_seq_max"])
def test_another_build_is_refused(file: Path, name: str) -> None:
    context = library().llama_context_default_params()
    value = getattr(context, name)
    setattr(context, name, not value if isinstance(value, bool) else value + 1)
    with pytest.raises(EngineError, match=rf"is not build {BUILD}") as raised:
        check(context, file)
    assert PACKAGE in (raised.value.hint or "")
    with pytest.raises(EngineError):
        check(structure("llama_model_params")(), file)


def test_without_the_library_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libllama, "find_spec", lambda _: None)
    monkeypatch.setattr(libllama, "COMPILED", Path("nowhere"))
    assert find_library() is None
    library.cache_clear()
    with pytest.raises(EngineError, match=r"llama\.cpp is not installed"):
        library()


def test_what_is_no_library_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libllama, "COMPILED", tmp_path)
    broken = tmp_path / libllama.NAMES.get(sys.platform, "libllama.so")
    broken.write_bytes(b"no library")
    assert find_library() == broken, "what was compiled here comes first"
    library.cache_clear()
    with pytest.raises(EngineError, match=r"llama\.cpp cannot be loaded"):
        library()
    library.cache_clear()


def test_openmp_is_the_one_that_torch_brings(file: Path) -> None:
    if sys.platform != "linux":
        pytest.skip("the package of this system has its own")
    program = (
        "import torch; from voiceloop.llm.gguf.libllama import library; library();"
        "print(*(line.split()[-1] for line in open('/proc/self/maps') if 'libgomp.so' in line))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert {Path(one).parent.parent.name for one in ran.stdout.split()} == {"torch"}
