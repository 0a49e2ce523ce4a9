"""The microphone of the glasses: when it is on, and which words are heard."""
