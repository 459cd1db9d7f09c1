"""The wake word: nothing is heard, stored, sent or answered before it is said."""
