"""Conversations that are kept on this machine and can be continued later.

- `names`: which names a conversation may have;
- `privatefile`: opens an SQLite file that only its owner reads, and checks it;
- `records`, `store`: the records of a conversation, and the file with them;
- `lease`, `writer`: the right of one process to write a conversation, and its writing thread;
- `prompt`: the prompt for the language model, with earlier exchanges;
- `keeping`: a kept conversation that is open;
- `condensing`: summarises old exchanges in idle time;
- `continuing`: connects a kept conversation to a session.
"""
