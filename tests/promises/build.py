"""Promises about how tool folders are checked, compiled and told to models. `DECLINED` holds
rows that do not apply to an edge, each with its reason.
"""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    # ------------------------------------------------------------ names
    "S0-03": Promise("A tool is known as package:tool, everywhere inside.", "seed S0-03"),
    "S0-04": Promise("A name is split at its first colon.", "seed S0-04"),
    "S0-05": Promise(
        "A name without a colon is refused for good, and the log says what it lacks.", "seed S0-05"
    ),
    "S0-06": Promise(
        "A name with an empty half is refused for good, and the log says what it lacks.",
        "seed S0-06",
    ),
    "I5-alias": Promise(
        "Every tool has one alias that all providers and MCP take; "
        "no two share one, and each finds its tool again.",
        "issue 5; facts/mcp.md 3",
    ),
    "C-05": Promise("An alias is looked up, never parsed.", "C-05"),
    # ------------------------------------------------------------ what a tool folder must be
    "I5-lint": Promise(
        "Every rule of the build has a folder that breaks it, "
        "and the message names folder, file and field.",
        "issue 5, Show 1",
    ),
    "I5-check": Promise(
        "`glassd registry check` fails until what changed was built again.", "issue 5, Show 1"
    ),
    "S2-01": Promise("A tool is a folder: there with it, gone without.", "seed S2-01"),
    "S2-02": Promise("Each missing required field is named.", "seed S2-02"),
    "S2-03": Promise("A category is retrieval, action or utility.", "seed S2-03"),
    "S2-04": Promise(
        "Side effects are none, read_only or writes, and models are hinted so.", "seed S2-04"
    ),
    "S2-05": Promise("A tool works in at least one of text and voice.", "seed S2-05"),
    "S2-06": Promise("A latency budget is a positive number.", "seed S2-06"),
    "S2-07": Promise("Parameters are an object.", "seed S2-07"),
    "S2-08": Promise("A tool of ours refuses parameters it does not know.", "seed S2-08"),
    "S2-09": Promise("What retrieves does not write.", "seed S2-09"),
    "S2-10": Promise("What retrieves may be asked twice.", "seed S2-10"),
    "S2-11": Promise("An action that writes unasked is warned of, and built.", "seed S2-11"),
    "S2-12": Promise("A folder is named like its tool.", "seed S2-12"),
    "S2-14": Promise("Documentation has its seven sections.", "seed S2-14"),
    "S2-15": Promise(
        "A handler exports execute; said at the build, and again when it is loaded.", "seed S2-15"
    ),
    "S2-16": Promise("A missing file fails the build.", "seed S2-16"),
    "S2-18": Promise("Hidden folders and plain files are no tools.", "seed S2-18"),
    "S2-19": Promise("Parameters that are no JSON Schema fail the build.", "seed S2-19"),
    "S2-20": Promise("What the build accepts never fails to load.", "seed S2-20"),
    "C-19": Promise("What writes is an action.", "C-19"),
    "C-21": Promise("A text for models that names a tool nobody has fails the build.", "C-21"),
    "C-27": Promise(
        "Our own schemas are held strictly, foreign ones to JSON Schema 2020-12 alone.", "C-27"
    ),
    "C-29": Promise("The sample of the seed that breaks its own rules is refused.", "C-29"),
    # ------------------------------------------------------------ the artifact
    "S2-21": Promise(
        "The artifact tells its version, hash, commit and time, and is replaced whole.",
        "seed S2-21",
    ),
    "S2-22": Promise(
        "The artifact holds everything of a tool: policy, schema, alias, "
        "provider forms, summary, where the rest is.",
        "seed S2-22",
    ),
    "S2-24": Promise(
        "A flip of any field of a tool is a new version; the order of folders does not show.",
        "seed S2-24, C-09",
    ),
    "S2-25": Promise("Outside a repository the commit is null.", "seed S2-25"),
    "S2-26": Promise("Hashes are over the canonical form of RFC 8785.", "seed S2-26"),
    "S2-31": Promise("The daemon loads nothing that provider forms are made with.", "seed S2-31"),
    "S2-32": Promise(
        "The artifact is made, not kept, and made again when anything it is made of changes.",
        "seed S2-32",
    ),
    "S2-33": Promise("No client is let in before all tools are loaded.", "seed S2-33"),
    # ------------------------------------------------------------ what providers are told
    "S2-27": Promise(
        "All provider forms are always built; one that is gone is missed by tool and provider.",
        "seed S2-27",
    ),
    "S2-28": Promise("OpenAI gets the parameters as they are.", "seed S2-28"),
    "S2-29": Promise("Gemini gets JSON Schema, and its older form on demand.", "seed S2-29"),
    "S2-30": Promise("Every keyword that a form loses is told.", "seed S2-30"),
    "I5-strict": Promise(
        "What a model in OpenAI's strict mode says is valid once its nulls are taken out.",
        "facts/providers.md 3",
    ),
    "I5-withheld": Promise(
        "A tool that one provider cannot be told of is withheld from "
        "that provider only, with the reason.",
        "facts/providers.md 6",
    ),
    # ------------------------------------------------------------ what models read
    "S2-57": Promise(
        "A summary reads `**id** (category): summary`, one blank line between.", "seed S2-57"
    ),
    "S2-58": Promise(
        "Documentation is read when it is asked for; who has none has none.", "seed S2-58"
    ),
    "S2-59": Promise("The policy of a tool is eight fields.", "seed S2-59"),
    "S2-60": Promise("The tools of one category are listed.", "seed S2-60"),
    "S2-116": Promise("In voice models get summaries, never documentation.", "seed S2-116"),
    "S2-117": Promise(
        "In text models get documentation of three to six tools, else summaries.", "seed S2-117"
    ),
    "S2-118": Promise(
        "From twenty tools on models are told how to ask for documentation.", "seed S2-118"
    ),
    "I5-agent-loop": Promise(
        "The agent loop's text is made from the registry, stable, and kept for each mode.",
        "issue 5; C-21",
    ),
    # ------------------------------------------------------------ validation
    "I5-json-schema": Promise(
        "JSON Schema 2020-12 is measured behind our own wrapper: keywords, "
        "formats, references, defaults, bounds, patterns.",
        "issue 5, Show 5",
    ),
    "S2-35": Promise(
        "Defaults that were filled are told in the audit, and only then.", "seed S2-35"
    ),
    "S2-36": Promise("Nothing is coerced.", "seed S2-36"),
    "S2-37": Promise("Unknown parameters of a closed schema are refused.", "seed S2-37"),
    "S2-38": Promise("Formats are asserted.", "seed S2-38"),
    "S2-39": Promise(
        "A refusal names each failing field by its JSON pointer and keeps the raw errors.",
        "seed S2-39",
    ),
    "C-28": Promise("Format assertion is switched on, not assumed.", "C-28"),
    "S0-50": Promise("Every missing field is reported, not only the first.", "seed S0-50"),
    "S0-51": Promise("Further arguments are taken where the schema allows them.", "seed S0-51"),
    "S0-52": Promise("Arguments are judged in depth.", "seed S0-52"),
    "S0-53": Promise("An integer is a whole number: 3.0 is one, 3.5 is none.", "seed S0-53"),
    "S0-54": Promise("Null is taken only where the schema says so.", "seed S0-54"),
}

DECLINED: Final[dict[str, str]] = {}
