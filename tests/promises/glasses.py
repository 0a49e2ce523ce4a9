"""Promises about the glasses themselves as tools, and about what the MCP server tells of them
beside its tools.
"""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I6-ask": Promise(
        "A caller who waits gets the wearer's answer in the same call, "
        "or that none came; calling it off takes the question away.",
        "issue 6, Server",
    ),
    "I6-delivery": Promise(
        "What the wearer really got stands in the words of an MCP result, where a model reads it.",
        "issue 6, Server; contract §3",
    ),
    "I6-glasses": Promise(
        "Cards and pictures are put on the lens by ordinary "
        "tools, and what became of them is told.",
        "issue 6, Server",
    ),
    "I6-wait": Promise(
        "A caller waits for what the wearer does, "
        "is told which it was, and misses nothing between two waits.",
        "issue 6, Server",
    ),
    "I6-sign-in": Promise(
        "A sign-in is on the lens as a short code to type, "
        "and as a QR code where these glasses draw pixels.",
        "issue 6, Client",
    ),
    "I6-show-image": Promise(
        "A PNG or JPEG is fitted to this lens in the shades it has; "
        "what is no picture is refused with what is wrong with it.",
        "issue 6, Server",
    ),
    "I6-resources": Promise(
        "An MCP client reads the registry, each tool's documentation, "
        "the lens to the pixel and the status, but no address.",
        "issue 6, Server",
    ),
    "I6-prompts": Promise(
        "The agent loop is generated: it names the tools that are offered, "
        "by their names on this server, and no other.",
        "issue 6, Server; C-21",
    ),
}

DECLINED: Final[dict[str, str]] = {}
