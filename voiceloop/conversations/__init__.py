"""Conversations that are kept on this machine, and go on later.

- `names`: which names a conversation may have;
- `privatefile`: an SQLite file that only its owner reads, and what happens if it is damaged;
- `records`, `store`: what is kept of a conversation, and where;
- `lease`, `writer`: who writes a conversation, and the thread that does;
- `prompt`: what the language model is told of earlier exchanges;
- `keeping`: a conversation that is open, beside its session;
- `condensing`: the summary of old exchanges, made in idle time.
"""
