"""One client of the server.

- `connection`, `outbox`: its connection: tasks, limits, messages, end;
- `client_session`, with `user_turns`, `response_requests`, `responses`, `history` and
  `choices`: the translation between events of the protocol and a session;
- `client_conversation`: the state of its conversation, which outlives a connection;
- `audio`: the client as microphone and speaker;
- `offers`: language-model servers and kept conversations that it may choose.
"""
