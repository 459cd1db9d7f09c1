"""MCP servers in the settings and in files of other programs, before any of them is started."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from voiceloop.errors import ConfigError, VoiceloopError
from voiceloop.recording.format import veiled
from voiceloop.settings.config import Config, McpConfig, McpServer, load_config
from voiceloop.tools.servers import configured

pytestmark = [pytest.mark.pure, pytest.mark.usefixtures("mcp_package")]

TOML = """
[mcp]
serve = ["home"]
[mcp.servers.home]
command = "npx"
args = ["-y", "home"]
env = { TOKEN = "${HOME_TOKEN}", LEVEL = "info" }
[mcp.servers.web]
url = "https://example.org/mcp"
headers = { Authorization = "Bearer ${WEB_TOKEN}" }
confirm = ["*"]
timeout_s = 30
"""
ENVIRON = {"HOME_TOKEN": "a", "WEB_TOKEN": "b"}


@pytest.fixture
def settings(tmp_path: Path) -> Callable[[str], McpConfig]:
    def load(text: str) -> McpConfig:
        file = tmp_path / "mine.toml"
        file.write_text(text)
        return load_config([file])[0].mcp

    return load


def test_servers_are_a_table_each(settings: Callable[[str], McpConfig]) -> None:
    found = configured(settings(TOML), environ=ENVIRON)
    assert found == {
        "home": McpServer(command="npx", args=("-y", "home"), env={"TOKEN": "a", "LEVEL": "info"}),
        "web": McpServer(
            url="https://example.org/mcp",
            headers={"Authorization": "Bearer b"},
            confirm=("*",),
            timeout_s=30,
        ),
    }


def test_only_those_that_are_named_are_served(settings: Callable[[str], McpConfig]) -> None:
    config = settings(TOML)
    assert [*configured(config, only=config.serve, environ={"HOME_TOKEN": "a"})] == ["home"]
    assert configured(config, only=()) == {}
    with pytest.raises(ConfigError, match="no MCP server 'hoem'") as caught:
        configured(config, only=["hoem"])
    assert caught.value.hint == "did you mean 'home'?"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[mcp.servers.x]", "has neither a command nor a url"),
        ("[mcp.servers.x]\ncommand = 'a'\nurl = 'http://b'", "has both a command and a url"),
        ("[mcp.servers.x]\nurl = 'ftp://b'", "begins neither with http:// nor https://"),
        ("[mcp.servers.x]\ncommand = 'a'\nenv = {A = '${NOT_SET}'}", "needs the variable NOT_SET"),
        ("[mcp.servers.x]\ncomand = 'a'", "mcp.servers is no key"),
        ("[mcp.servers]\nx = 'a'", "mcp.servers must be a table, not 'a'"),
        (
            "[mcp.servers.x]\ncommand = 'a'\ntimeout_s = 0",
            "must be a number from 0.1 to 600, not 0",
        ),
        ("[mcp]\nfile = '/nowhere.json'", "cannot read /nowhere.json"),
    ],
)
def test_a_wrong_server_is_told_in_one_line(
    settings: Callable[[str], McpConfig], text: str, message: str
) -> None:
    with pytest.raises(VoiceloopError) as caught:
        configured(settings(text), environ={})
    assert message in caught.value.message and "\n" not in caught.value.message


def test_the_file_of_another_program_is_read_too(tmp_path: Path) -> None:
    file = tmp_path / "claude.json"
    listed = {
        "files": {"command": "npx", "args": ["files"], "type": "stdio", "autoApprove": ["x"]},
        "web": {"url": "https://example.org", "headers": {"A": "b"}},
        "off": {"command": "no", "disabled": True},
    }
    file.write_text(json.dumps({"mcpServers": listed, "theme": "dark"}))
    own = {"web": McpServer(command="mine")}
    found = configured(McpConfig(file=str(file), servers=own))
    assert found == {"files": McpServer(command="npx", args=("files",)), "web": own["web"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("[]", "has no object under `mcpServers`"),
        ('{"mcpServers": []}', "has no object under `mcpServers`"),
        ('{"mcpServers": {"x": []}}', "has neither a command nor a url"),
        ('{"mcpServers": {"x": {"command": 3}}}', "'x' is wrong"),
        (" " * (1 << 20) + "{}", "is larger than 1 MiB"),
        ("\udcff", "is not valid JSON"),
    ],
    ids=range(8),
)
def test_a_wrong_file_is_told_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "claude.json"
    file.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ConfigError) as caught:
        configured(McpConfig(file=str(file)))
    assert message in caught.value.message and "\n" not in caught.value.message


def test_secrets_of_servers_are_in_no_recording(settings: Callable[[str], Any]) -> None:
    file_settings = settings(TOML)
    assert veiled(Config(mcp=file_settings)).mcp == McpConfig()
