"""Mentra Display ("Nex"): protobuf messages, text, pictures, microphone."""
