"""The measurements of `voiceloop bench`: each compares modes in one process and leaves a record."""
