"""Promises about the glasses themselves as tools, and about what the MCP server tells of them beside its tools."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I6-sign-in": Promise("A sign-in is on the lens as a short code to type, and as a QR code where these glasses draw pixels.", "issue 6, Client"),
    "I6-show-image": Promise("A PNG or JPEG is fitted to this lens in the shades it has; what is no picture is refused with what is wrong with it.", "issue 6, Server"),
}

DECLINED: Final[dict[str, str]] = {}
