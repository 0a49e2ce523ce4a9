"""The promises of the registry, a file a part; `tests/requirements.py` joins them."""
