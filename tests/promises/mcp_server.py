"""Promises about `glassd mcp`: our tools as an MCP server."""

from typing import Final

from tests.promises.words import Promise

_SOURCE: Final = "issue 6, Server; facts/mcp.md"
PROMISES: Final[dict[str, Promise]] = {
    "MCP-eras": Promise(
        "One server speaks both revisions of MCP, 2025-11-25 and 2026-07-28.", f"{_SOURCE} 1"
    ),
    "MCP-names": Promise(
        "A tool is called by its alias or its own name; names are looked up, "
        "and one that is no tool's is answered -32602.",
        f"{_SOURCE} 3, C-05, C-42",
    ),
    "MCP-metadata": Promise(
        "What we know of a tool is told as hints and under io.glassd/, "
        "its author's words as they were written.",
        f"{_SOURCE} 2",
    ),
    "MCP-errors": Promise(
        "Every failure of a known tool is a result a model can "
        "read, with the envelope for a program.",
        f"{_SOURCE} 4, C-42",
    ),
    "MCP-content": Promise(
        "Pictures, sounds and resources of other servers go out as they came.", f"{_SOURCE} 4"
    ),
    "MCP-pending": Promise(
        "A call that is finished later says where its result will "
        "be, and get_pending_result gives it.",
        f"{_SOURCE} 4",
    ),
    "MCP-rate": Promise("Calls that come too often are told when to come again.", f"{_SOURCE} 6"),
    "MCP-absent": Promise(
        "Without a daemon the tools are listed from disk, and a call says what to start.", _SOURCE
    ),
    "MCP-progress": Promise(
        "Progress is told in order, before the result, and only to who asked for it.",
        f"{_SOURCE} 4",
    ),
    "MCP-cancel": Promise(
        "A call its client gives up is called off in the daemon, over HTTP by closing its stream.",
        f"{_SOURCE} 4",
    ),
    "MCP-news": Promise(
        "Clients of both revisions hear that the tools changed, "
        "and those that watch it that the lens did.",
        f"{_SOURCE} 4",
    ),
    "MCP-confirm": Promise(
        "A call that needs a yes asks the wearer, and the client's user only where "
        "the owner said so; whoever answers first decides.",
        f"{_SOURCE} 4, C-24, issue 11.8",
    ),
    "CONSENT-roles": Promise(
        "Who may only call tools and read can confirm nothing, "
        "is given no token, and is told which group decides.",
        "issue 11.8",
    ),
    "CONSENT-terminal": Promise(
        "At a terminal everything that would run is shown, "
        "and only what a person types there afterwards is an answer.",
        "issue 11.8",
    ),
    "CONSENT-grants": Promise(
        "An always ends when the tool or its origin changes; a never does not.", "issue 11.8"
    ),
    "MCP-confirm-once": Promise(
        "A yes counts once, for the very call it was given for.", f"{_SOURCE} 4, C-14"
    ),
    "MCP-asks-back": Promise(
        "What another server's tool asks of its caller reaches the client, "
        "as its revision wants it and as far as it can answer.",
        f"{_SOURCE} 1, 4",
    ),
    "MCP-http": Promise(
        "Over HTTP a client of 2026-07-28 lists and calls without a session.", f"{_SOURCE} 5"
    ),
    "MCP-strangers": Promise(
        "Pages of other sites, and other names of this machine, are turned away.", f"{_SOURCE} 5"
    ),
    "MCP-token": Promise(
        "Where there is a token nobody gets in without it; beyond this machine there must be one.",
        f"{_SOURCE} 5",
    ),
    "MCP-bounds": Promise("A message of more than 4 MiB is not read.", f"{_SOURCE} 5"),
    "MCP-crowd": Promise(
        "Neither unfinished requests without the token nor forgotten sessions "
        "keep a client out; the oldest of them leaves.",
        "issue 11.13",
    ),
    "MCP-socket": Promise(
        "systemd starts the server with the first client, on the socket it opened.",
        "issue 6, Server",
    ),
    "MCP-stdio": Promise(
        "Over stdio nothing but messages is ever on stdout, "
        "and the end of stdin or SIGTERM is a clean end.",
        f"{_SOURCE} 5",
    ),
}

DECLINED: Final[dict[str, str]] = {}
