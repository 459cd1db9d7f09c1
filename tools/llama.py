"""Compiles llama.cpp for this machine's processor, where the package's build of it is slower.

    .venv/bin/python tools/llama.py [OPTIONS OF CMAKE...]      for example -DGGML_CUDA=ON

The package xllamacpp is built for any processor with AVX2. Its sources, of the same build, are
compiled here for what this processor has, such as AVX-512, or for a GPU. The result is put where
voiceloop looks first. It takes a C++ compiler and some minutes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from voiceloop.llm.gguf.libllama import COMPILED, PACKAGE

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet")
# Products by AMX crash if a compiler has left the tiles unconfigured (ggml-org/llama.cpp 20824,
# 26954), so they are left out; with them, weights would not be repacked either.
NO_AMX = "-U__AMX_TILE__ -U__AMX_INT8__"
OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=ON",
    *(f"-DLLAMA_BUILD_{part}=OFF" for part in ("COMMON", "EXAMPLES", "SERVER", "TESTS", "TOOLS")),
    f"-DCMAKE_C_FLAGS={NO_AMX}",
    f"-DCMAKE_CXX_FLAGS={NO_AMX}",
    "-DCMAKE_BUILD_WITH_INSTALL_RPATH=ON",
    f"-DCMAKE_INSTALL_RPATH={'@loader_path' if sys.platform == 'darwin' else '$ORIGIN'}",
)


def main(options: Sequence[str]) -> None:
    """Compile the library with `options` for cmake. Raises CalledProcessError if a step fails."""
    if shutil.which("cmake") is None:
        subprocess.run([*PIP, "install", "cmake"], check=True)
    cmake = shutil.which("cmake") or str(Path(sys.executable).with_name("cmake"))
    with TemporaryDirectory() as folder:
        work = Path(folder)
        fetched = [*PIP, "download", "--no-deps", "--no-binary", "xllamacpp", "-d", folder, PACKAGE]
        subprocess.run(fetched, check=True)
        (archive,) = work.glob("xllamacpp-*.tar.gz")
        with tarfile.open(archive) as sources:
            sources.extractall(work, filter="data")
        (source,) = work.glob("xllamacpp-*/thirdparty/llama.cpp")
        build = work / "build"
        subprocess.run([cmake, "-S", source, "-B", build, *OPTIONS, *options], check=True)
        compiling = ["--config", "Release", "--target", "llama", "--parallel"]
        subprocess.run([cmake, "--build", build, *compiling], check=True)
        shutil.rmtree(COMPILED, ignore_errors=True)
        shutil.copytree(build / "bin", COMPILED, symlinks=True)
    print(f"voiceloop takes {COMPILED} from now on; delete it to go back to the package's build")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
