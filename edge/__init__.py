"""The daemon: rules (`core/`), rooms that do I/O, one roof (`app.py`). See README "Plan of the house"."""

__version__ = "0.1.0"
