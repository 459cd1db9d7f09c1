"""Sound: frames, files, devices, and the player that knows what was heard."""
