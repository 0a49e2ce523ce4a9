"""Promises about what these glasses can do, and so which tools they get. `DECLINED` holds rows
that do not apply to an edge, each with its reason.
"""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "S0-09": Promise(
        "A tool inherits what its app needs; "
        "needs of its own count only where that is switched on.",
        "seed S0-09, S0-70",
    ),
    "S0-13": Promise(
        "Which apps these glasses leave out, and for want of what, is in the log and in the audit.",
        "seed S0-13",
    ),
    "S0-14": Promise("An app without tools is no error.", "seed S0-14"),
    "I4-amenities": Promise(
        "Brightness, silent mode, notifications and the glasses' own "
        "dashboard are tools, where the glasses have them.",
        "issue 4, Even Realities G1",
    ),
    "I5-hardware-reason": Promise(
        "Every tool that glasses hide has a reason a person understands, which names the glasses.",
        "issue 5, Hardware, Show 2",
    ),
    "I5-hardware-swap": Promise(
        "Other glasses, other tools: the list follows at once, "
        "the cloud is told, and clients hear of it once.",
        "issue 5, Show 2",
    ),
    "I5-hardware-below": Promise(
        "A tool may need more than a flag: a size, a count, an ability of the hardware.",
        "issue 5, Hardware",
    ),
}

DECLINED: Final[dict[str, str]] = {}
