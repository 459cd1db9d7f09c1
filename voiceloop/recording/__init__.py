"""A conversation in a folder: its sound, its events, and all reports with the core's decisions."""
