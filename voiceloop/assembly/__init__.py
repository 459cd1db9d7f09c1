"""From settings to engines: chooses models, checks that they fit into memory, and loads them."""
