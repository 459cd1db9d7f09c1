"""The layout of the package: which way imports point, and where heavy packages may be imported."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import voiceloop

pytestmark = pytest.mark.pure

PACKAGE = Path(voiceloop.__file__).parent

ORDER = (
    ("types",),
    ("errors", "foreign"),
    ("outputs", "terminal"),
    ("settings",),
    ("bundled", "languages"),
    ("engines", "placement", "process", "status"),
    ("catalog", "runner", "skills"),
    ("trace",),
    ("view",),
    ("audio", "calibration"),
    ("asr", "llm", "tts"),
    ("dialogue", "tools", "wake"),
    ("turn",),
    ("recording", "session"),
    ("conversations",),
    ("assembly",),
    ("wire",),
    ("server",),
    ("api", "bench", "doctor"),
    ("replay",),
    ("cluster",),
    ("cli",),
    ("__main__",),
)
"""A module imports only from the rows above its own, or from its own folder."""
RANK = {name: rank for rank, row in enumerate(ORDER) for name in row}

LLM = (
    ("rules", "text"),
    ("gguf",),
    ("model", "chat"),
    ("draft", "remote"),
    ("decode",),
    ("pair", "tokenhistory"),
    ("replies",),
    ("conversation",),
    ("engine",),
)
"""The folders and modules of llm/ in order; again each imports only from the rows above."""
LLM_RANK = {name: rank for rank, row in enumerate(LLM) for name in row}
MOST_MODULES = 16
"""Of a folder of llm/."""

ROOMS = {
    "torch": (
        *(
            "asr/",
            "doctor/machine.py",
            "llm/",
            "placement.py",
            "assembly/planning.py",
            "tts/",
            "process.py",
        ),
        "bench/",
    ),
    "transformers": ("llm/", "bench/"),
    "accelerate": (),
    "gguf": (),
    "xllamacpp": (),
    "onnx": ("catalog/piper.py",),
    "huggingface_hub": ("catalog/pull.py",),
    "mcp": ("tools/mcp.py",),
    "httpx2": (
        "tools/mcp.py",
        *("catalog/fetch.py", "catalog/pull.py"),
        *("llm/remote/chatclient.py", "llm/remote/finding.py"),
    ),
    "ctranslate2": ("asr/",),
    "faster_whisper": ("asr/",),
    "onnxruntime": ("asr/", "tts/graphs.py"),
    "TTS": ("tts/",),
    "pymicro_wakeword": ("wake/acoustic.py",),
    "pywebrtc_audio": ("audio/echo.py",),
    "sounddevice": ("audio/portaudio.py",),
    "websockets": ("server/paced.py",),
    "h11": ("server/paced.py",),
    "uvicorn": ("server/paced.py", "server/app.py"),
    "starlette": ("server/",),
    "prometheus_client": ("server/ops/metrics.py",),
    "cryptography": ("server/phone.py", "server/port.py"),
    "segno": ("server/phone.py",),
    "opentelemetry": ("server/ops/telemetry.py",),
    # Not for Windows, so each is guarded where it is; benchmarks are for other systems.
    "fcntl": ("catalog/store.py",),
    "uvloop": ("server/port.py",),
    "resource": ("bench/", "llm/text/sandbox.py"),
    **dict.fromkeys(("termios", "tty"), ("view/keyboard.py",)),
    **{name: () for name in ("grp", "pty", "pwd", "readline", "syslog")},
}
"""The only places where a package is imported."""

PURE = (
    "types.py",
    "settings/schema.py",
    "languages/voices.py",
    "audio/frames.py",
    "audio/g711.py",
    "audio/playback.py",
    "foreign.py",
    "settings/presets.py",
    "asr/turns.py",
    "asr/streaming.py",
    "asr/windowed.py",
    "asr/window.py",
    "asr/transcript.py",
    "calibration/probability.py",
    "asr/vad_stream.py",
    "dialogue/actions.py",
    "dialogue/floor.py",
    "dialogue/core.py",
    "dialogue/consent.py",
    "dialogue/conversationstate.py",
    "dialogue/endpoint.py",
    "dialogue/modelqueue.py",
    "dialogue/inputs.py",
    "dialogue/state.py",
    "dialogue/user.py",
    "conversations/records.py",
    "recording/format.py",
    "skills/__init__.py",
    "skills/answer.py",
    "skills/clock.py",
    "skills/grammar.py",
    "skills/known.py",
    "skills/phrases.py",
    "skills/sums.py",
    "skills/talk.py",
    "skills/template.py",
    "skills/timers.py",
    "skills/tools.py",
    "skills/words.py",
    "calibration/fitting.py",
    "catalog/cards.py",
    "languages/__init__.py",
    "languages/en/__init__.py",
    "languages/language.py",
    "languages/numbers.py",
    "languages/spoken.py",
    "llm/text/calls.py",
    "llm/text/parts.py",
    "llm/remote/chatstream.py",
    "llm/text/leaks.py",
    "llm/remote/chatrequest.py",
    "llm/remote/servers.py",
    "llm/rules/draftpolicy.py",
    "llm/text/messages.py",
    "llm/rules/sampling.py",
    "llm/rules/stats.py",
    "llm/rules/verify.py",
    "tts/clauses.py",
    "tts/delivery.py",
    "tts/rules.py",
    "tts/markup.py",
    "tts/normalize.py",
    "tools/results.py",
    "trace/otel.py",
    "trace/record.py",
    "trace/waterfall.py",
    "view/rows.py",
    "view/transcript.py",
    "wake/phrase.py",
    "wire/client_events.py",
    "wire/items.py",
    "wire/parsing.py",
    "wire/ledger.py",
    "wire/responses.py",
    "wire/server_events.py",
    "wire/settings.py",
    "server/access/auth.py",
    "server/session/history.py",
    "bench/clips.py",
    "bench/turnfigures.py",
    "doctor/findings.py",
)
"""Modules that neither wait, nor look at a clock, nor touch a file."""
IMPURE = {
    *("anyio", "asyncio", "threading", "socket", "subprocess", "time"),
    *("io", "os", "pathlib", "shutil", "tempfile", "soundfile"),
}

MOST_ATTRIBUTES = 12
"""Of a class that needs no reason for them."""

FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def imports(tree: ast.AST) -> Iterator[str]:
    """Every module that is imported anywhere in `tree`, inside functions too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            if node.module == "voiceloop":
                yield from (f"voiceloop.{alias.name}" for alias in node.names)
            else:
                yield node.module


@cache
def parse(file: str) -> ast.Module:
    return ast.parse((PACKAGE / file).read_text(encoding="utf-8"))


def room(file: str) -> str:
    """The module or folder of the package that a file belongs to."""
    return file.split("/")[0].removesuffix(".py")


def of_each(files: Iterable[str]) -> Callable[[Callable[[str], None]], Callable[[], None]]:
    """Make a check of one module a test of all `files`: one test for each would take minutes."""
    every = list(files)

    def decorate(check: Callable[[str], None]) -> Callable[[], None]:
        def test() -> None:
            assert every
            for file in every:
                check(file)

        return test

    return decorate


@of_each(file for file in FILES if file != "__init__.py")
def test_imports_point_up_the_list_of_modules(file: str) -> None:
    own = room(file)
    assert own in RANK, f"{file} has no place in the list"
    for name in imports(parse(file)):
        if name.split(".")[0] == "voiceloop":
            other = room(name.removeprefix("voiceloop.").split(".")[0])
            if other in RANK:  # else a name of voiceloop/__init__.py
                assert other == own or RANK[other] < RANK[own], f"{file} imports {name}"


@of_each([file for file in FILES if file.startswith("llm/")][1:])
def test_imports_within_llm_point_up_its_list(file: str) -> None:
    own = room(file.removeprefix("llm/"))
    assert own in LLM_RANK, f"{file} has no place in the list"
    for name in imports(parse(file)):
        if name.startswith("voiceloop.llm."):
            other = name.split(".")[2]
            assert other == own or LLM_RANK[other] < LLM_RANK[own], f"{file} imports {name}"


def test_no_folder_of_llm_has_too_many_modules() -> None:
    inside = [file.split("/")[1] for file in FILES if re.match("llm/.+/(?!__init__)", file)]
    assert max(Counter(inside).values()) <= MOST_MODULES


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions count, those for a type checker alone do not."""
    modules = {file.removesuffix(".py").replace("/", ".") for file in FILES}
    graph = {
        file.removesuffix(".py").replace("/", "."): set(_modules(_running(parse(file)), modules))
        for file in FILES
        if not file.endswith("__init__.py")
    }
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def _running(tree: ast.Module) -> ast.Module:
    """The code that runs: without what stands under `if TYPE_CHECKING`."""

    class Typing(ast.NodeTransformer):
        def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
            self.generic_visit(node)
            return node.orelse if ast.unparse(node.test) == "TYPE_CHECKING" else node

    return Typing().visit(tree)


def _modules(tree: ast.Module, modules: set[str]) -> Iterator[str]:
    """The modules of the package that `tree` imports, also by the name of their folder."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            yield from {name.removeprefix("voiceloop.") for name in names} & modules


def test_the_package_itself_imports_nothing_until_a_name_is_used() -> None:
    running = _running(parse("__init__.py"))
    outside = [node for node in running.body if not isinstance(node, ast.FunctionDef)]
    assert not list(imports(ast.Module(outside, [])))


@of_each(FILES)
def test_nothing_that_ships_imports_what_does_not(file: str) -> None:
    outside = {"lab", "models", "scripts", "tests", "tools"}
    assert not {name.split(".")[0] for name in imports(parse(file))} & outside


@of_each(FILES)
def test_heavy_packages_are_imported_in_their_rooms_only(file: str) -> None:
    for name in imports(parse(file)):
        rooms = ROOMS.get(name.split(".")[0])
        assert rooms is None or file.startswith(rooms), f"{file} imports {name}"


@of_each(PURE)
def test_pure_modules_neither_wait_nor_look_at_a_clock_nor_touch_a_file(file: str) -> None:
    tree = parse(file)
    waits = (ast.Await, ast.AsyncFor, ast.AsyncWith, ast.AsyncFunctionDef)
    assert not [node for node in ast.walk(tree) if isinstance(node, waits)]
    assert not {name.split(".")[0] for name in imports(tree)} & IMPURE
    assert "open" not in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def test_types_stand_on_numpy_alone() -> None:
    known = {"__future__", "collections.abc", "dataclasses", "typing", "numpy", "numpy.typing"}
    assert set(imports(parse("types.py"))) <= known


def attributes(kind: ast.ClassDef) -> set[str]:
    """What a class declares, and what its methods set."""
    declared = {
        node.target.id
        for node in kind.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    stored = {
        node.attr
        for node in ast.walk(kind)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if isinstance(node.value, ast.Name) and node.value.id == "self"
    }
    return declared | stored


@of_each(FILES)
def test_a_class_of_many_attributes_says_why(file: str) -> None:
    for kind in ast.walk(parse(file)):
        if isinstance(kind, ast.ClassDef) and len(attributes(kind)) > MOST_ATTRIBUTES:
            told = ast.get_docstring(kind) or ""
            assert "attributes" in told or "fields" in told, f"{kind.name} has many attributes"


PAGE = (PACKAGE.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
WALK = re.findall(r"^\| \d+ \| `([\w.]+)` \| `([\w/]+)` \|", PAGE, re.MULTILINE)
"""The way of the sound as it is written down: what takes it on, and where."""
SOUND = {"AudioFrame", "Pcm", "Word", "Transcript", "TokenBurst", "Clause", "SpeechChunk"}
"""What is on that way, in one form or another."""


def test_the_way_of_the_sound_is_in_the_code_and_passes_the_session_once() -> None:
    assert [where for _, where in WALK].count("session") == 1
    for name, where in WALK:
        scope: list[ast.stmt] = parse(f"{where}.py").body
        for part in name.split("."):
            kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
            found = [node for node in scope if isinstance(node, kinds) and node.name == part]
            assert found, f"there is no {name} in {where}"
            scope = found[0].body


def test_the_session_sees_no_frame_word_or_token() -> None:
    names = {node.id for node in ast.walk(parse("session.py")) if isinstance(node, ast.Name)}
    assert not names & SOUND


@of_each(file for file in FILES if file.startswith(("turn/", "dialogue/")))
def test_whatever_runs_for_a_turn_is_given_few_functions(file: str) -> None:
    allowed = {
        "turn/resources.py": ["report", "show"],
        "turn/skills.py": ["report"],
        "turn/thinking.py": ["Take"],  # where words go
        "turn/tasks.py": ["Job"],  # a task, for its task group
    }
    given = [
        ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])
        for node in ast.walk(parse(file))
        if isinstance(node, ast.AnnAssign | ast.Assign) and "Callable[" in ast.unparse(node)
    ]
    taken = [
        node.arg
        for node in ast.walk(parse(file))
        if isinstance(node, ast.arg) and node.annotation is not None
        if "Callable" in ast.unparse(node.annotation)
    ]
    assert [*given, *taken] == allowed.get(file, [])


def test_each_file_that_the_page_names_is_there() -> None:
    roots = PACKAGE, PACKAGE / "llm", PACKAGE.parent
    named = {*re.findall(r"`(\w+(?:/\w+)+(?:\.\w+)?)/?`", PAGE)}
    assert len(named) > 100
    for name in named:
        endings = ("",) if "." in name else ("", ".py")
        found = (root / f"{name}{ending}" for root in roots for ending in endings)
        assert any(path.exists() for path in found), f"there is no {name}"
