"""The map tools need the addresses of two services; the one Config of all of them."""

from tools_cache.everyday.maps_settings import Config

__all__ = ("Config",)
