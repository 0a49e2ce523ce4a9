"""Promises about which tools are offered, switched on, and loaded. `DECLINED` holds rows that
do not apply to an edge, each with its reason.
"""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "S0-37": Promise(
        "What the wearer says offline finds its local tool, in the language that is configured.",
        "seed S0-37",
    ),
    "S0-69": Promise(
        "A user's denied tools are hidden and refused, "
        "calls are counted, and rates are the user's own.",
        "seed S0-69",
    ),
    "S4-17": Promise(
        "Enabling a tool enables what it depends on, all the way down; a circle ends.", "seed S4-17"
    ),
    "S4-18": Promise("A gated tool cannot be enabled, and its reason is told.", "seed S4-18"),
    "S4-19": Promise("Disabling a tool names those that depend on it.", "seed S4-19"),
    "S4-20": Promise("Whether a gated tool is available is asked at every call.", "seed S4-20"),
    "S4-21": Promise(
        "Essential tools are offered from the start and never unloaded.", "seed S4-21"
    ),
    "S4-22": Promise("Calling an unknown tool through another is NOT_FOUND.", "seed S4-22"),
    "S4-23": Promise(
        "Calling a tool that is switched off is refused for good, with the reason.", "seed S4-23"
    ),
    "S4-24": Promise(
        "Arguments that come as JSON text are taken; what is no JSON is a validation error.",
        "seed S4-24",
    ),
    "S4-27": Promise(
        "A use is told after the run; the tool that calls others tells none of its own.",
        "seed S4-27",
    ),
    "S4-54": Promise(
        "The loader's state can be read: available, loaded, essential, turn.", "seed S4-54"
    ),
    "S4-55": Promise(
        "At turn boundaries idle tools are unloaded: "
        "those for one call after a turn, others after the configured ones.",
        "seed S4-55",
    ),
    "S4-56": Promise(
        "What the loader does is told in order, on the bus and in the audit log.", "seed S4-56"
    ),
    "S4-57": Promise(
        "A tool that is not offered is found by words, loaded, and called by its name.",
        "seed S4-57",
    ),
    "I5-tools-switch": Promise(
        "`glassd tools enable` and `disable` switch a tool, "
        "say what hangs on it, and outlive a restart.",
        "issue 5, Runtime",
    ),
    "C-37": Promise(
        "Own and cloud tools are on until switched off; "
        "of other servers only what the owner named comes in.",
        "seed C-37",
    ),
}

DECLINED: Final[dict[str, str]] = {
    "S4-58": (
        "Hints for a prompt in XML belong to whoever writes the prompt; "
        "ours are the summaries (S2-57) and the descriptions."
    ),
}
