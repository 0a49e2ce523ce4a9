"""Models' own tool formats: a model's message in, the messages with our tools' answers out.
Every part is pure but `turn`.
"""
