"""Promises about how the registry is kept, renewed and served. `DECLINED` holds rows that do not apply to an edge, each with its reason."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I5-10000": Promise("A registry of 10,000 tools is taken, kept small in memory, and checked by few compiled validators.", "issue 5, Shows 4"),
    "I5-cold-damaged": Promise("A corrupt newest copy of the registry changes nothing but a warning.", "issue 5, Shows 3"),
    "I5-cold-enrolled": Promise("An enrolled edge begins with the last good copy of its cloud's tools.", "issue 5, Cache and sync"),
    "I5-cold-tools": Promise("`glassd tools` answers with the age of the registry, also when no daemon runs.", "issue 5, Shows 3"),
    "I5-list-changed": Promise("A change of the list of offered tools is told once, after it took force, at a turn boundary.", "issue 5, Runtime; C-36"),
    "I5-reload-live": Promise("SIGHUP and `systemctl reload` change settings and servers without a restart.", "issue 5, Shows 4"),
    "I5-reload-named": Promise("What a reload cannot change is named in the log and in `status` until a restart.", "issue 5, Shows 4"),
    "I5-reload-refused": Promise("A bad new configuration is refused with its error, and the old one stays in force.", "issue 5, Shows 4"),
    "S0-33": Promise("What a registry hands out cannot be changed, and stays as it was checked.", "seed S0-33"),
    "S3-37": Promise("A new server brings new tools without new code: a reload is enough.", "seed S3-37"),
}

DECLINED: Final[dict[str, str]] = {}
