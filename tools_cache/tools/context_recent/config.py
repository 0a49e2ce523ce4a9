"""The settings of the history's tools."""

from tools_cache.api.history_settings import Config

__all__ = ["Config"]
