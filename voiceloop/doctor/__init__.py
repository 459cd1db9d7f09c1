"""`voiceloop doctor`: finds what is broken on a machine, names cures, and suggests a preset."""
