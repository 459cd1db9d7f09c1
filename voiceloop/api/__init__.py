"""The Python API: a program loads models, holds conversations with them, and mounts the server."""
