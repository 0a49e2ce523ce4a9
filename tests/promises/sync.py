"""Promises about how the registry is kept, renewed and served. `DECLINED` holds rows that do
not apply to an edge, each with its reason.
"""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I5-10000": Promise(
        "A registry of 10,000 tools is taken, kept small in memory, "
        "and checked by few compiled validators.",
        "issue 5, Shows 4",
    ),
    "I5-cold-damaged": Promise(
        "A corrupt newest copy of the registry changes nothing but a warning.", "issue 5, Shows 3"
    ),
    "I5-cold-enrolled": Promise(
        "An enrolled edge begins with the last good copy of its cloud's tools.",
        "issue 5, Cache and sync",
    ),
    "I5-cold-tools": Promise(
        "`glassd tools` answers with the age of the registry, also when no daemon runs.",
        "issue 5, Shows 3",
    ),
    "I5-list-changed": Promise(
        "A change of the list of offered tools is told once, "
        "after it took force, at a turn boundary.",
        "issue 5, Runtime; C-36",
    ),
    "I5-reload-live": Promise(
        "SIGHUP and `systemctl reload` change settings and servers without a restart.",
        "issue 5, Shows 4",
    ),
    "I5-reload-named": Promise(
        "What a reload cannot change is named in the log and in `status` until a restart.",
        "issue 5, Shows 4",
    ),
    "I5-reload-refused": Promise(
        "A bad new configuration is refused with its error, and the previous one stays active.",
        "issue 5, Shows 4",
    ),
    "I5-tools-only": Promise(
        "An edge can live with a cloud that has only `GET /api/tools`.",
        "contract §5; issue 5, Cache and sync",
    ),
    "I11-added-tool": Promise(
        "A tool that was added to the cloud a moment ago can be called at once.", "issue 11, 21"
    ),
    "S0-01": Promise(
        "No transcript is kept on disk; a repeated utterance is known by a digest of its words.",
        "seed S0-01",
    ),
    "S0-16": Promise(
        "A tool is found by its whole name at once; "
        "an unknown app and an unknown tool are both TOOL_NOT_FOUND.",
        "seed S0-16",
    ),
    "S0-32": Promise(
        "Tools come from the registry of the cloud in force alone; "
        "nothing else that is said to a running daemon adds one.",
        "seed S0-32",
    ),
    "S0-35": Promise(
        "A definition that is none costs that tool alone, and says which field is wrong.",
        "seed S0-35",
    ),
    "S0-36": Promise(
        "Schemas are JSON Schema in full: nested objects and arrays are filled and checked.",
        "seed S0-36",
    ),
    "S0-38": Promise(
        "An unknown category reads as other with a warning; tools are listed by category.",
        "seed S0-38",
    ),
    "S0-44": Promise(
        "Listing and finding cached tools does no work that grows "
        "with them; 1,000 are listed within 5 ms.",
        "seed S0-44",
    ),
    "S0-33": Promise(
        "What a registry hands out cannot be changed, and stays as it was checked.", "seed S0-33"
    ),
    "S2-40": Promise("An unknown tool is NOT_FOUND and not worth asking again.", "seed S2-40"),
    "S2-42": Promise(
        "Every answer says which tool, version, registry, route, when and how long.", "seed S2-42"
    ),
    "S2-49": Promise(
        "A registry made for another envelope version is refused, and the last good one stays.",
        "seed S2-49",
    ),
    "S2-61": Promise(
        "The registry of an installation is locked once it is "
        "loaded; locking again is only remarked on.",
        "seed S2-61",
    ),
    "S2-62": Promise("No snapshot is given of a registry that may still change.", "seed S2-62"),
    "S2-63": Promise(
        "A snapshot names version, commit and tools, and cannot be changed.", "seed S2-63"
    ),
    "S2-64": Promise(
        "Production refuses to reload the installed tools; development takes the new version.",
        "seed S2-64",
    ),
    "S2-65": Promise(
        "A turn keeps the registry it began with, and every answer says which that was.",
        "seed S2-65",
    ),
    "S2-66": Promise(
        "A registry that changed within a turn is an error in "
        "development and a line in the log in production.",
        "seed S2-66",
    ),
    "K1-sync": Promise(
        "`glassd registry sync` fetches the cloud's registry now, "
        "or says why not and changes nothing.",
        "contract §1",
    ),
    "S3-37": Promise(
        "A new server brings new tools without new code: a reload is enough.", "seed S3-37"
    ),
}

DECLINED: Final[dict[str, str]] = {}
