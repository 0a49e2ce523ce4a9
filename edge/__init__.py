"""The daemon: rules (`core/`), rooms that do I/O, one roof (`daemon/app.py`). See
docs/architecture.md.
"""

__version__ = "0.1.0"
