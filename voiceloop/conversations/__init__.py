"""Conversations that are kept on this machine and can be continued later.

- `names`: which names a conversation may have;
- `files`: opens an SQLite file that only its owner reads, checks it, and leases a conversation;
- `records`: the records of a conversation, and the prompt for the language model;
- `store`, `writer`: the file with the records, and the thread that writes it;
- `keeping`: a kept conversation that is open;
- `condensing`: summarises old exchanges in idle time, and connects a conversation to a session.
"""
