"""Promises about what a local tool stands on. `DECLINED` holds rows that do not apply to an
edge, each with its reason.
"""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "S0-61": Promise(
        "A handler that raises is answered HANDLER_ERROR, not retryable, without its words.",
        "seed S0-61",
    ),
    "S2-43": Promise("A failure a handler returns reaches the caller as it is.", "seed S2-43"),
    "S2-44": Promise(
        "A failure a handler raises keeps its type, "
        "message and flags; flags it does not set are false.",
        "seed S2-44",
    ),
    "S2-46": Promise(
        "A result whose error is malformed is INTERNAL, "
        "never a crash; a missing retryable is false.",
        "seed S2-46",
    ),
    "S2-47": Promise("An envelope of a handler's own is checked field by field.", "seed S2-47"),
    "S2-50": Promise(
        "A tool is handed capabilities, never a radio, a broker or a room.", "seed S2-50"
    ),
    "S2-51": Promise("What a tool does to the state it was shown changes nothing.", "seed S2-51"),
    "S2-52": Promise("Intents come from a tool's result alone.", "seed S2-52"),
    "S4-01": Promise("A tool class without run cannot be made, built or loaded.", "seed S4-01"),
    "S4-02": Promise(
        "A tool's parameters name what is required and refuse what they do not know.", "seed S4-02"
    ),
    "S4-03": Promise("A result said as {success, data} is an ok of ours.", "seed S4-03"),
    "S4-04": Promise(
        "A hundred calls of many users at once never mix what belongs to whom.", "seed S4-04"
    ),
    "S4-05": Promise(
        "Each user's data of each package has a folder of its own, 0700, whatever the user's name.",
        "seed S4-05",
    ),
    "S4-06": Promise("A row of one user is invisible to every other.", "seed S4-06"),
    "S4-07": Promise("What a tool logs carries its name.", "seed S4-07"),
    "S4-08": Promise(
        "A tool whose settings are wrong is off, with the reason; the others go on.", "seed S4-08"
    ),
    "S4-09": Promise(
        "A tool names the tools it depends on; it depends on none unless it says so.", "seed S4-09"
    ),
    "S4-10": Promise(
        "`glassd registry show TOOL` tells parameters, "
        "settings and what a tool asks for, without running it.",
        "seed S4-10",
    ),
    "S4-11": Promise(
        "A tool that says it is not available is refused with its reason, asked at each call.",
        "seed S4-11",
    ),
    "S4-12": Promise(
        "A tool's files are below its folder: no ../, no absolute path, no link leads out.",
        "seed S4-12",
    ),
    "S4-13": Promise(
        "A tool's settings are a model of its own with enabled; "
        "a file that cannot serve is refused when built.",
        "seed S4-13",
    ),
    "S4-14": Promise(
        "Of the classes in a handler only a whole one written there "
        "counts; imported and abstract ones do not.",
        "seed S4-14",
    ),
    "S4-15": Promise(
        "A tool's code is imported when it is called first, and importing makes no instance.",
        "seed S4-15",
    ),
    "S4-16": Promise("A tool that nobody configures works by its defaults.", "seed S4-16"),
    "S4-25": Promise(
        "Each call has an instance of its own; nothing is left in it for the next.", "seed S4-25"
    ),
    "S4-26": Promise(
        "A tool's constructor is handed what its annotations name; "
        "anything else is an error when built and when loaded.",
        "seed S4-26",
    ),
    "S4-28": Promise(
        "Tables have verbs with bound values and checked names; SQL in a value is kept as text.",
        "seed S4-28",
    ),
    "S4-29": Promise(
        "Columns named encrypted__ are on disk only as AES-GCM, "
        "bound to their row; a lost key is told, nothing overwritten.",
        "seed S4-29",
    ),
    "C-34": Promise("A tool is run by its canonical name, with arguments and a context.", "C-34"),
    "C-38": Promise(
        "A class tool is made anew for each call; what is expensive comes by injection.", "C-38"
    ),
}

DECLINED: Final[dict[str, str]] = {}
