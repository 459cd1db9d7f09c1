"""The view of a session in a terminal, and the keys that the user presses."""
