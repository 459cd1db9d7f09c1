"""Sessions that a client can resume after its connection broke, on this server or on another.

- `tokens`: the secrets by which a client shows that a session is its own;
- `sessions`: the rules of who has a session, kept in a store;
- `store`: what a store is, and the store in memory;
- `sqlite`, `redis`, `ray`: the stores that several servers share;
- `opening`: the choice of a store by the settings;
- `snapshot`: the form of a conversation in a shared store.
"""
