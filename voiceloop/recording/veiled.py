"""Leaves out of settings what nobody else may know."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from msgspec.structs import replace

from voiceloop.config import Config, McpConfig, ServerConfig


def veiled(settings: Config) -> Config:
    """Return `settings` without secrets.

    Users and passwords in addresses are left out, and everything after their path. So is the store
    of the server's sessions, and the settings of MCP servers and of engines' own, which may hold
    anything.
    """
    return replace(
        settings,
        asr=replace(settings.asr, options={}),
        llm=replace(settings.llm, options={}, base_url=_without_user(settings.llm.base_url)),
        tts=replace(settings.tts, options={}),
        server=replace(settings.server, store=ServerConfig().store),
        mcp=McpConfig(),
    )


def _without_user(url: str) -> str:
    """Return an address without its user, password, query and fragment; nothing if it is none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
