"""Promises about the connections to other MCP servers: the child that holds them, and the
handle the daemon has to it.
"""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I6-start": Promise(
        "Servers start at the same time; a dead or slow one costs the others nothing.",
        "seed S1-40; issue 6, Client",
    ),
    "S1-25": Promise(
        "A tool of another server gets its arguments as they are, in both eras of the protocol.",
        "seed S1-25",
    ),
    "S1-26": Promise(
        "Whatever a server does, a call of it gives one outcome and raises nothing.", "seed S1-26"
    ),
    "S1-27": Promise("JSON in the one text of an answer is read, and the text kept.", "seed S1-27"),
    "S1-28": Promise("A call that failed counts no longer as under way.", "seed S1-28"),
    "S1-29": Promise(
        "A server nobody uses for a while is disconnected, and comes back with the next call.",
        "seed S1-29",
    ),
    "S1-30": Promise("A running call keeps its connection, however long it takes.", "seed S1-30"),
    "S1-31": Promise(
        "A call whose connection was lost is sent once more if it "
        "provably never left, or may be repeated.",
        "seed S1-31",
    ),
    "S1-33": Promise("A server that answers with null is said to have done so.", "seed S1-33"),
    "S1-36": Promise(
        "A server is connected, disconnected, loading or authorizing, and every change is told.",
        "seed S1-36",
    ),
    "S1-41": Promise("Cancelling a call cancels it at its server.", "seed S1-41"),
    "S1-44": Promise("When a server changes its tools, they are listed again.", "seed S1-44"),
    "S1-46": Promise("Content of every kind comes through as its server wrote it.", "seed S1-46"),
}

DECLINED: Final[dict[str, str]] = {}
