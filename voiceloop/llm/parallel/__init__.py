"""Several replies at once: the best of several candidates, and replies begun ahead."""
