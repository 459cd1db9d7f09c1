"""A shopping list for the language model to read and write, as an MCP server.

It needs `pip install 'mcp>=2.3'` (voiceloop's extra `mcp`), a model that calls tools, such as that
of preset laptop, and these lines in ~/.config/voiceloop/config.toml:

    [mcp.servers.shopping]
    command = "python"
    args = ["/path/to/mcp_server.py"]

Then `voiceloop talk`, and say "Put milk on the shopping list".
"""

from pathlib import Path

from mcp.server import MCPServer

FILE = Path.home() / "shopping.txt"
shopping = MCPServer("shopping")


@shopping.tool()
def add_to_shopping_list(item: str) -> str:
    """Put an item on the shopping list."""
    with FILE.open("a", encoding="utf-8") as file:
        print(item, file=file)
    return f"{item} is on the list"


@shopping.tool()
def read_shopping_list() -> list[str]:
    """Read what is on the shopping list."""
    return FILE.read_text(encoding="utf-8").splitlines() if FILE.exists() else []


if __name__ == "__main__":
    shopping.run("stdio")
