"""Promises about the tools of other MCP servers. `DECLINED` holds rows that do not apply to an
edge, each with its reason.
"""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "S1-02": Promise(
        "A server without tools, or none that are allowed, adds nothing.", "seed S1-02"
    ),
    "S1-03": Promise(
        "A tool of another server says which server it is from and what it is called there.",
        "seed S1-03",
    ),
    "S1-04": Promise(
        "Every tool is of exactly one source, "
        "and no mark of ours stands in what providers are told.",
        "seed S1-04",
    ),
    "S1-05": Promise(
        "The seed's id of a tool is made as the seed makes it, "
        "and shown beside the name calls go by.",
        "seed S1-05",
    ),
    "S1-06": Promise(
        "In an id of the seed every other character is replaced, by UTF-16 unit.", "seed S1-06"
    ),
    "S1-07": Promise("An id of the seed begins with a letter or an underscore.", "seed S1-07"),
    "S1-08": Promise(
        "A part of an id of the seed is cut after its beginning was mended.", "seed S1-08"
    ),
    "S1-09": Promise(
        "Two long parts of an id of the seed share its 124 characters in proportion.", "seed S1-09"
    ),
    "S1-10": Promise(
        "A tool whose seed id has lost its server is called by its own name all the same.",
        "seed S1-10",
    ),
    "S1-11": Promise(
        "Two tools that share an id of the seed have two names and two aliases.", "seed S1-11"
    ),
    "S1-12": Promise(
        "A server with an underscore in its name is found by table, never by parsing.",
        "seed S1-12, C-05",
    ),
    "S1-13": Promise("A caller's mentions win over its allow-list.", "seed S1-13"),
    "S1-14": Promise(
        "A scope with neither mentions nor an allow-list lets in no tool of another server.",
        "seed S1-14",
    ),
    "S1-15": Promise(
        "A server that fails takes nothing from the list: "
        "what it listed last is served, with why it is away.",
        "seed S1-15",
    ),
    "S1-16": Promise("An empty list of mentions is every tool.", "seed S1-16"),
    "S1-17": Promise("Mentioning a server brings all its tools.", "seed S1-17"),
    "S1-18": Promise("Mentioning a tool brings that one, by its name on its server.", "seed S1-18"),
    "S1-19": Promise(
        "Mentions of one server add up; mentioning the server itself brings all.", "seed S1-19"
    ),
    "S1-20": Promise("Mentions of other kinds alone bring nothing.", "seed S1-20"),
    "S1-21": Promise("An empty allow-list brings nothing.", "seed S1-21"),
    "S1-22": Promise("An allow-list brings only what it names, server and tool.", "seed S1-22"),
    "S1-23": Promise(
        "Mentions add, an allow-list restricts: "
        "empty means everything for one and nothing for the other.",
        "seed S1-23",
    ),
    "S1-24": Promise(
        "A server's display name decides nothing: renamed, its tools are called as before.",
        "seed S1-24",
    ),
    "S1-32": Promise(
        "A server that wants a sign-in is answered AUTH, with the address to go to.", "seed S1-32"
    ),
    "S1-34": Promise(
        "A sign-in that is wanted is a state of the server, and never an exception.", "seed S1-34"
    ),
    "S1-35": Promise("Every server is listed with its id and how it fares.", "seed S1-35"),
    "S1-37": Promise(
        "A tool's whole definition is passed on as its author wrote it.", "seed S1-37"
    ),
    "S1-38": Promise("A server is described without a secret of its settings.", "seed S1-38"),
    "S1-42": Promise(
        "A call goes where its tool was listed; one whose tool is gone goes nowhere.", "seed S1-42"
    ),
    "S1-43": Promise(
        "The tools of a server that cannot be reached stay listed, marked with why.", "seed S1-43"
    ),
    "S1-45": Promise(
        "The owner's words may stand in place of a tool's description; "
        "of a tool that is not there they make none.",
        "seed S1-45",
    ),
    "S1-48": Promise(
        "A sign-in is finished with the code the browser was sent back with.", "seed S1-48"
    ),
    "S1-49": Promise(
        "A server that is switched off, or lacks its secret, is not asked and adds nothing new.",
        "seed S1-49",
    ),
    "S1-50": Promise(
        "The list tells of each tool its server's id and its name there, to group by.", "seed S1-50"
    ),
    "S1-01": Promise(
        "The tools in force are found by their names, whatever their source.", "seed S1-01"
    ),
    "S1-40": Promise(
        "The tools of this device, of the cloud and of other servers are loaded "
        "side by side; a slow server keeps none waiting.",
        "seed S1-40",
    ),
    "S1-47": Promise(
        "Every call of another server's tool leaves a line in the audit log, failures too.",
        "seed S1-47",
    ),
    "I6-hostile": Promise(
        "A server that dies, hangs, floods or lies costs its own call, "
        "with one clear envelope, and nothing else.",
        "issue 6, Shows 5",
    ),
}

DECLINED: Final[dict[str, str]] = {}
