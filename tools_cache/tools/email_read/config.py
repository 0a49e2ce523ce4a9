"""The settings of all `email` tools."""

from tools_cache.everyday.mail_settings import Config

__all__ = ["Config"]
