"""Promises about how a tool of each execution type is run and shown. `DECLINED` holds rows that
do not apply to an edge, each with its reason.
"""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "S0-41": Promise("A tool that wants no voice is shown and not spoken.", "seed S0-41"),
    "S0-42": Promise(
        "Follow-ups a tool suggests reach its caller as they were said.", "seed S0-42"
    ),
    "S3-05": Promise(
        "An internal tool puts nothing before the wearer, whatever it is configured to or answers.",
        "seed S3-05",
    ),
    "S3-06": Promise(
        "Tools are visible unless they say otherwise; internal ones never are.", "seed S3-06"
    ),
    "S3-07": Promise(
        "Another server's tools are not shown unless that is configured.", "seed S3-07"
    ),
    "S3-08": Promise(
        "Calls of built-in tools are not shown beside what they do themselves.", "seed S3-08"
    ),
    "S3-09": Promise(
        "A visible call is shown as it begins, and its name with its result.", "seed S3-09"
    ),
    "S3-10": Promise(
        "Without glasses a result goes to its caller only; "
        "that is said once and nothing is queued.",
        "seed S3-10",
    ),
    "S3-11": Promise(
        "A file in tools.d becomes a tool; a slip in it is told by file, "
        "field and fix, and costs no other tool.",
        "seed S3-11",
    ),
    "S3-12": Promise(
        "A secret stands in no file: what has none is hidden with a "
        "reason and never leaves; no value is logged.",
        "seed S3-12",
    ),
    "S3-13": Promise(
        "What a caller sends stays a value: it breaks no body, no address and no header.",
        "seed S3-13",
    ),
    "S3-14": Promise(
        "A tool is asked by the address, method, headers, body and time its author wrote.",
        "seed S3-14",
    ),
    "S3-17": Promise(
        "A webhook is told a call that is answered later, once, "
        "and again only where twice does no harm.",
        "seed S3-17",
    ),
    "S3-18": Promise(
        "A result is laid out as its tool says, and as text where nobody knows that component.",
        "seed S3-18",
    ),
    "S3-19": Promise(
        "A file that names a built-in tool, or its package, is refused.", "seed S3-19"
    ),
    "S3-20": Promise("Tools of the seed's second version are not listed.", "seed S3-20"),
    "S3-34": Promise(
        "MCP servers stand in the same files, and only the tools named there come in.",
        "seed S3-34; C-37",
    ),
    "S3-35": Promise("A server that is down costs its own tools only.", "seed S3-35"),
    "S3-36": Promise(
        "Nothing that comes in takes the place of a tool that is there.", "seed S3-36; C-17"
    ),
    "S3-39": Promise(
        "A model sees the schema its author wrote, and nothing of how the tool is asked.",
        "seed S3-39",
    ),
    "S3-40": Promise(
        "Every kind of tool passes the same stages, and the audit line names them.", "seed S3-40"
    ),
}

DECLINED: Final[dict[str, str]] = {}
