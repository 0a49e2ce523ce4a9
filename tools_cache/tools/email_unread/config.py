"""The settings of all `email` tools."""

from tools_cache.api.mail_settings import Config

__all__ = ["Config"]
