"""The pure rules of decoding: which tokens are drafted, drawn, verified and counted."""
