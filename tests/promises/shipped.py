"""Promises about the tools that come with glassd. `DECLINED` holds rows that do not apply to an
edge, each with its reason.
"""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "S2-119": Promise(
        "What the knowledge base finds is evidence: best first, "
        "each document once; nothing found is no error.",
        "seed S2-119",
    ),
    "S2-120": Promise(
        "A search takes exactly what its schema says, and every filter is kept.", "seed S2-120"
    ),
    "S2-121": Promise(
        "A voice gets at most three results, also when it asked for no number, and is told so.",
        "seed S2-121, C-08",
    ),
    "S2-122": Promise(
        "Free time is asked for between two moments, at most 31 days apart, in text mode.",
        "seed S2-122, C-18",
    ),
    "S2-123": Promise(
        "Busy times are joined, free slots counted in whole minutes, "
        "also on the nights the clocks change.",
        "seed S2-123, C-16",
    ),
    "S2-124": Promise(
        "A calendar that is asked too often, refuses us or is away says which, and what to do.",
        "seed S2-124, C-10",
    ),
    "S2-125": Promise(
        "An event is made after a yes, in text mode, once a call, and its file is whole.",
        "seed S2-125, C-24",
    ),
    "S2-126": Promise(
        "A voice session is begun from text, under a name of its own, and not twice.",
        "seed S2-126, C-19",
    ),
    "S2-127": Promise("A voice session is ended by voice only, after the farewell.", "seed S2-127"),
    "S2-128": Promise(
        "Told to leave the wearer alone, it says farewell, "
        "and then neither speaks nor acts on speech until the time is over.",
        "seed S2-128",
    ),
    "S2-129": Promise(
        "What each tool is, in which mode, how fast and after which question, "
        "is read from the schemas, and they are obeyed.",
        "seed S2-129, C-18, C-19",
    ),
    "S2-130": Promise(
        "A tool that would be refused in a mode is not offered in it.", "seed S2-130"
    ),
    "CLI-harmless": Promise(
        "No text from outside moves a terminal's cursor or turns the "
        "direction of writing, in JSON either.",
        "issue 11.14",
    ),
    "OWN-python": Promise(
        "An owner's Python tool runs as glassd's own do, "
        "is read again on a reload, and a bad one costs no other.",
        "issue 11.20",
    ),
    "OWN-python-trusted": Promise(
        "Code that anybody but root and the daemon's user could change is never run.", "issue 11.20"
    ),
    "CLI-output": Promise(
        "An output that is closed or full is an error of one line, for every verb.", "issue 11.22"
    ),
    "CLI-interrupt": Promise("Ctrl-C ends a verb without a traceback.", "issue 11.22"),
    "CLI-bom": Promise("A byte order mark before TOML is no mistake.", "issue 11.22"),
    "CLI-extras": Promise(
        "What is not installed is named at once, with the command that installs it here.",
        "issue 11.22",
    ),
    "DEMO-leaves-nothing": Promise(
        "A demo removes its folder, however it ends, unless it is to be kept or it failed.",
        "issue 11.22",
    ),
    "I11-sysctl": Promise(
        "An installation changes no kernel setting of the whole "
        "machine; the doctor prints the command.",
        "issue 11.14",
    ),
}

DECLINED: Final[dict[str, str]] = {}
