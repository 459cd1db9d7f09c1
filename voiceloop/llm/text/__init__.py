"""Text around token ids: chat templates, tool calls, and the spoken part of a reply."""
