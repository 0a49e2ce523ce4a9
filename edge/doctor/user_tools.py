"""Checks of what the owner configures: folders, files of own tools that cannot be used, tools that
wait for something.

Secrets are not read: the running daemon reports what a tool waits for.
"""

from pathlib import Path

from edge.config import folders
from edge.core.tools.user_tools import Own
from edge.doctor.machine import CheckGroup
from edge.doctor.models import Finding, do, fail, ok, skip, warn
from edge.doctor.subprocesses import in_thread


class UserToolChecks(CheckGroup):
    """Whether the owner's folders and tools can be used."""

    async def folders(self) -> Finding:
        """Check the folders of the configuration: one that does not exist is not an empty one."""
        settings = self._settings
        found = await in_thread(lambda: folders.unreadable(settings))
        for key, folder, problem in found:
            return fail(f"{key} {folder}: {problem}", do(folders.fix(key, folder, settings)))
        named = ", ".join(str(folder) for _, folder in folders.named(settings))
        return ok(named) if named else skip("the configuration names none")

    async def own(self) -> Finding:
        settings = self._settings
        places = folders.of_user_tools(settings, self._examined.env)
        packages = settings.tools.packages
        found = await in_thread(lambda: _read(places, packages, self._examined.serves.uid))
        if found.problems:
            name, reason = found.problems[0]
            more = f", and {len(found.problems) - 1} more" if len(found.problems) > 1 else ""
            return warn(
                f"{name}: {reason}{more}",
                do(f"correct {_path(places, name)}, then: systemctl reload glassd"),
            )
        if not found.apps:
            return skip(f"there are none in {places[0]}")
        withheld = self._withheld()
        for tool in found.tools:
            if tool.name in withheld:
                return warn(
                    f"{tool.name} is hidden: {withheld[tool.name]}",
                    do(f"give it what it waits for ({withheld[tool.name]}), then restart glassd"),
                )
        there = [*(str(place) for place in places if place.is_dir()), *packages]
        return ok(f"{len(found.tools)} tools in {', '.join(there)}")

    def _withheld(self) -> dict[str, str]:
        own = self._examined.layer("registry").get("own") or {}
        return dict(own.get("withheld") or {})


def _read(places: tuple[Path, ...], packages: tuple[str, ...], uid: int) -> Own:
    from edge.tools import user_tools as own_reading  # noqa: PLC0415 - pydantic and the validator, only for who has such files

    return own_reading.read(places, packages, (uid,))


def _path(places: tuple[Path, ...], name: str) -> Path:
    """Return the file of a problem; the tool's name may follow its name."""
    file = name.partition(" (")[0]
    return next((place / file for place in places if (place / file).exists()), Path(file))
