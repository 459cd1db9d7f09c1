"""How requests are made, by language: data alone."""
