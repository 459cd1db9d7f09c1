"""The server of `voiceloop serve`: a web page, and the OpenAI Realtime protocol on a websocket.

From the network inwards:

- `port`, `tls`, `websocket`, `paced`: the address, encryption, and websockets with limited input;
- `routes`, `http`: answers to requests: a page, metrics, a voice sample, a refusal or a websocket;
- `auth`, `keys`, `limits`: who may connect, and how much one client may use;
- `connection`, `outbox`, `meter`: one connection: its two tasks, and its limits;
- `lobby`, with `resume`: the session registry, and how a client resumes its session;
- `dialogue`: the state of a client's conversation, which outlives a connection;
- `visit`, with `inputbuffer`, `userturns`, `asking`, `unanswered`, `speaking`, `history` and
  `choices`: the client session, which translates between events of the protocol and a session;
- `audio`: a client as microphone and speaker;
- `offers`: other language-model servers that may generate the replies;
- `service`: the whole server without a port;
- `app`, `asgi`, `command`: its port and signals, the same under an ASGI server, and the command;
- `metrics`, `logs`, `plainlog`, `turnlog`: metrics and logs.
"""
