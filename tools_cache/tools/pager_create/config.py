"""The settings of all `pager` tools."""

from tools_cache.everyday.pager.settings import Config

__all__ = ["Config"]
