"""Removes secrets from settings."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from msgspec.structs import replace

from voiceloop.config import Config, McpConfig, ServerConfig


def veiled(settings: Config) -> Config:
    """Return `settings` without secrets.

    In `llm.base_url`, the user, the password and everything after the path are left out. The store
    of the server's sessions is left out. So are the settings of MCP servers and the options of
    engines, because they may contain anything.
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
    """Return `url` without its user, password, query and fragment. Return an empty text if `url` is
    not valid."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
