"""The settings: what they are, and how files, flags and presets give them."""
