"""Several replies at once: the best of them, and replies begun before they are asked for."""
