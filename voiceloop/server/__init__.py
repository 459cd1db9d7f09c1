"""The server of `voiceloop serve`: a web page, and the OpenAI Realtime protocol on a websocket.

From the network inwards:

- `port`, `tls`, `paced`: the address, encryption, and uvicorn's protocols with limited input;
- `phone`: the key, the certificate and the QR code by which phones get in;
- `routes`, `http`: what a request gets: a page, metrics, a voice sample, a refusal or a websocket;
- `auth`, `keys`, `limits`: who may connect, and how much one client may use;
- `connection`, `outbox`, `meter`, `closecodes`: one connection: its tasks, its limits, its end;
- `lobby`, with `resume`: the session registry, and how a client resumes its session;
- `dialogue`: the state of a client's conversation, which outlives a connection;
- `conversations`: kept conversations, which clients on this machine may open;
- `visit`, with `inputbuffer`, `userturns`, `asking`, `editing`, `unanswered`, `speaking`, `history`
  and `choices`: the client session, which translates between events of the protocol and a session;
- `audio`: a client as microphone and speaker;
- `offers`: other language-model servers that may generate the replies;
- `service`: the whole server without a port;
- `asgi`: the service as an ASGI application;
- `app`: that application under uvicorn at a port of its own, until a signal ends it;
- `command`: the command `voiceloop serve` and its options;
- `replicas`: the rules for replicas of the service on a Ray cluster;
- `metrics`, `otlpmetrics`, `telemetry`: metrics, and their export with traces by OpenTelemetry;
- `logs`, `plainlog`, `turnlog`: logs.
"""
