"""The wire of `voiceloop serve`: OpenAI's Realtime protocol, read and built without I/O.

    text ── client_events.parse ──► ClientEvent ── settings, ledger, responses ──► ServerEvent
                                                                                    │
                                                                   Event.to_json ◄──┘

Frozen dataclasses describe both directions (schema, settings, items, the events); reading checks
them and docs/protocol.md lists them. Who listens, speaks and waits is the server's business.
"""
