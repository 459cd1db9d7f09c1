"""What other programs use of voiceloop: its models, conversations and server within them."""
