"""The GATT UUIDs of our profile (PROFILE.md)."""

from typing import Final

SERVICE_UUID: Final = "1cb70001-9a97-4c4c-abdc-2194059f5b11"
INFO_UUID: Final = "1cb70002-9a97-4c4c-abdc-2194059f5b11"
RX_UUID: Final = "1cb70003-9a97-4c4c-abdc-2194059f5b11"
TX_UUID: Final = "1cb70004-9a97-4c4c-abdc-2194059f5b11"
