"""The user's own tools, which a language model may call: Python functions, and tools of MCP
servers."""
