"""`voiceloop doctor`: what breaks on this machine, what cures it, and which preset suits it."""
