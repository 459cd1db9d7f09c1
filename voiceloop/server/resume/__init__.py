"""Sessions that a client can resume after its connection broke, on this server or on another.

- `registry`: the sessions of this server;
- `sessions`: the rules of who has a session, kept in a store, and the secrets by which a client
  shows that a session is its own;
- `store`: the stores, of which several servers can share one.
"""
