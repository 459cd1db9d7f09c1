"""A small MCP server without any package. Some of its tools have schemas that the protocol does not
allow, and it prints a banner."""

from __future__ import annotations

import json
import sys

OBJECT = {"type": "object", "properties": {}}
LINK = {"type": "resource_link", "name": "the plan", "uri": "file:///plan.txt"}
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "untidy", "version": "1"},
    },
    "tools/list": {
        "tools": [
            {"name": "good", "inputSchema": OBJECT},
            {"name": "empty", "inputSchema": {}},
            {"name": "either", "inputSchema": {"anyOf": [OBJECT, {"type": "null"}]}},
            {"inputSchema": OBJECT},
            "no tool",
            {"name": "link", "inputSchema": OBJECT},
        ]
    },
    "tools/call": {"content": [LINK]},
}

if __name__ == "__main__":
    print("Welcome!", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        found = RESULTS.get(asked["method"])
        reply = {"result": found} if found else {"error": {"code": -32601, "message": "unknown"}}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **reply}), flush=True)
