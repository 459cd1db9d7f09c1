"""What the user of a terminal sees of a session, and the keys that they press."""
