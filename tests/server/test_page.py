"""docs/server.md: its tables say what the code says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from msgspec.structs import fields

from voiceloop import server
from voiceloop.server.access.auth import RefusalReason
from voiceloop.server.access.keys import LENGTHS, VARIABLE
from voiceloop.server.ops.metrics import Metrics
from voiceloop.settings.config import ServerConfig
from voiceloop.settings.schema import meanings

pytestmark = pytest.mark.pure

PAGE = Path(__file__, "../../../docs/server.md").resolve().read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """The rows of the table under a heading, cell by cell."""
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[1:]]


def test_every_limit_is_listed_with_its_default_and_its_meaning() -> None:
    said = meanings(ServerConfig)
    assert table("Limits") == [
        [
            f"`{limit.name}`",
            f"{limit.default:g}" if isinstance(limit.default, float) else f"{limit.default}",
            said[limit.name],
        ]
        for limit in fields(ServerConfig)
    ]


def test_every_refusal_is_listed_with_its_status_and_hint() -> None:
    assert table("Why a request was refused") == [
        [f"`{reason}`", f"{reason.status}", reason.hint] for reason in RefusalReason
    ]


def test_every_metric_is_listed() -> None:
    text = Metrics().render()[0].decode()
    made = set(re.findall(r"^# TYPE (\w+?)(?<!_created) ", text, re.MULTILINE))
    listed = {re.sub(r"[`{].*", "", row[0].strip("`")) for row in table("Metrics")}
    assert listed == made


def test_every_message_of_the_log_is_listed() -> None:
    logged = [
        ast.literal_eval(node.args[0])
        for path in Path(server.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "logger.info"
    ]
    assert sorted(row[0].strip("`") for row in table("Logs")) == sorted(set(logged))


def test_keys_are_as_the_page_says() -> None:
    assert f"{LENGTHS[0]} to {LENGTHS[-1]} characters" in PAGE
    assert f"at least {LENGTHS[0]} characters" in PAGE
    assert f"`{VARIABLE}`" in PAGE
