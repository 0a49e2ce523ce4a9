"""The weather tools need the address of a service; the one Config of all of them."""

from tools_cache.everyday.weather_settings import Config

__all__ = ("Config",)
