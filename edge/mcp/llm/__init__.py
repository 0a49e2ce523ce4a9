"""Providers' message formats: a model's message with tool calls in, messages with results out."""
