"""voiceloop: a real-time voice assistant that runs on one's own machine."""

__version__ = "0.1.0"
