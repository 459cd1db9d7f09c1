"""Between token ids and text: chat templates, tool calls, and what of a reply is spoken."""
