"""The settings of the history's tools."""

from tools_cache.everyday.history_settings import Config

__all__ = ["Config"]
