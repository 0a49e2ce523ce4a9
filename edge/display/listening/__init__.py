"""What the wearer sees of listening: that the microphone is on, words so far, captions."""
