"""The server of `voiceloop serve`: a web page, and the OpenAI Realtime protocol on a websocket.

From the network inwards:

- `command`: the command `voiceloop serve` and its options;
- `port`, `phone`: the address and its protection; the key, the certificate and the QR code by which
  phones get in;
- `app`, `asgi`, `paced`: the ASGI application, uvicorn at a port of its own, and uvicorn's
  protocols with limited input;
- `service`: the whole server without a port;
- `routes`: what a request gets;
- `replicas`: the rules for replicas of the service on a Ray cluster;
- `access/`: who may connect, and how much one client may use;
- `session/`: one client: its connection, its session and the state that outlives both;
- `resume/`: the session registry, and how a client resumes its session;
- `ops/`: logs, metrics, and their export by OpenTelemetry.
"""
