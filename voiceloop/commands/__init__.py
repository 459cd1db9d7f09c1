"""Commands of the terminal that no other part of voiceloop has: what they take and print."""
