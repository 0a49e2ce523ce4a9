"""Our glasses, in `bonds.json`: whom the daemon may connect to, and how each pairing was proved.

No keys: BlueZ or the radio's key file has those. A damaged file is moved aside and reported; the
glasses must then be paired again.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from edge.core.pairing_state import Bond
from edge.runtime.files import write_atomic

log = logging.getLogger(__name__)

VERSION: Final = 1
MAX_FILE: Final = 64 * 1024
"""A bond has about 200 bytes."""
MAX_BONDS: Final = 32
MAX_TEXT: Final = 64
_TEXTS: Final = ("id", "model", "name", "how")


class DamagedBonds(ValueError):
    """The file has another form than ours; the text says where."""


class Bonds:
    """The current bonds, after `load()`. A change returns when it is on disk."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._bonds: tuple[Bond, ...] = ()
        self._writing = asyncio.Lock()
        self.put_aside = ""
        """Why the bonds of the last run are gone, for `status`; "" when they are not."""

    def load(self) -> None:
        """Read the file; a missing one is no bonds, a damaged one is put aside. Never raises."""
        try:
            with self._path.open("rb") as file:
                raw = file.read(MAX_FILE + 1)
        except FileNotFoundError:
            return
        except OSError as error:
            self.put_aside = (
                f"{self._path} cannot be read ({error.strerror}): "
                "your glasses are not known; check who may read it"
            )
            log.warning("%s", self.put_aside)
            return
        try:
            self._bonds = parsed(raw)
        except DamagedBonds as damaged:
            self._set_aside(damaged)

    def _set_aside(self, damaged: DamagedBonds) -> None:
        aside = _free_name(self._path)
        try:
            self._path.replace(aside)
        except OSError:
            aside = self._path
        self.put_aside = (
            f"{self._path.name} was damaged ({damaged}) and put aside as "
            f"{aside.name}: pair your glasses again: glassd up"
        )
        log.warning("%s", self.put_aside)

    # -------------------------------------------------------------- reading

    def all(self) -> tuple[Bond, ...]:
        return self._bonds

    def find(self, wanted: str) -> Bond | None:
        """Give the bond of a pair id or of an address of one of its sides."""
        return next((bond for bond in self._bonds if _is(bond, wanted)), None)

    def addresses(self) -> frozenset[str]:
        """Every bonded address, in upper case."""
        return frozenset(
            address.upper() for bond in self._bonds for address in bond.addresses.values()
        )

    # -------------------------------------------------------------- changing

    async def add(self, bond: Bond) -> None:
        """Add a bond, replacing any with its id or an address. Raises OSError: nothing changed."""
        # BlueZ gives names of 248 bytes; the next start would call it damage
        bond = replace(bond, name=bond.name[:MAX_TEXT])
        shared = {bond.id, *bond.addresses.values()}

        def add(bonds: tuple[Bond, ...]) -> tuple[Bond, ...]:
            others = [old for old in bonds if not any(_is(old, name) for name in shared)]
            return (*others, bond)[-MAX_BONDS:]

        await self._change(add)
        self.put_aside = ""

    async def remove(self, bond_id: str) -> None:
        """Forget a bond; unknown ids are fine. Raises OSError."""
        await self._change(lambda bonds: tuple(old for old in bonds if old.id != bond_id))

    async def _change(self, change: Callable[[tuple[Bond, ...]], tuple[Bond, ...]]) -> None:
        """A thread that writes cannot be cancelled: a cancelled caller waits for its end."""
        changing = asyncio.ensure_future(self._change_and_write(change))
        try:
            await asyncio.shield(changing)
        except asyncio.CancelledError:
            await asyncio.wait([changing])
            if not changing.cancelled():
                changing.exception()  # retrieved: asyncio logs it otherwise
            raise

    async def _change_and_write(
        self, change: Callable[[tuple[Bond, ...]], tuple[Bond, ...]]
    ) -> None:
        async with self._writing:
            new = change(self._bonds)
            if new != self._bonds:
                await asyncio.to_thread(_write, self._path, encoded(new))
                self._bonds = new


def allowed(
    bonds: Bonds, *, connect: str, radio: str, address: str
) -> Callable[[], frozenset[str] | None]:
    """Return the rule whom the link may connect to: upper-case addresses, None for all known
    models.

    `connect` is the setting: "any"; "paired"; "auto", which requires a bond on a real radio, and on
    a virtual one (where only mocks are) as soon as there is one. A configured `address` is always
    allowed.
    """
    virtual = radio == "inproc" or radio.startswith("tcp:")

    def now() -> frozenset[str] | None:
        ours = bonds.addresses()
        free = connect == "any" or (connect == "auto" and virtual and not ours)
        return None if free or address else ours

    return now


def _is(bond: Bond, wanted: str) -> bool:
    names = (bond.id, *bond.addresses.values())
    return wanted.upper() in {name.upper() for name in names}


# ------------------------------------------------------------------ the file


def encoded(bonds: Iterable[Bond]) -> bytes:
    listed = [to_json(bond) for bond in bonds]
    return json.dumps({"version": VERSION, "bonds": listed}, ensure_ascii=False, indent=1).encode()


def to_json(bond: Bond, *, paired_at: str = "paired_at") -> dict[str, Any]:
    """Return a bond as JSON; `paired_at` is the name of that key."""
    texts = {key: getattr(bond, key) for key in ("id", "model", "name")}
    addresses = dict(bond.addresses)
    return {**texts, "addresses": addresses, "how": bond.how, paired_at: bond.paired_at}


def parsed(raw: bytes) -> tuple[Bond, ...]:
    """Read the file's content. Raises `DamagedBonds`."""
    if len(raw) > MAX_FILE:
        raise DamagedBonds(f"more than {MAX_FILE // 1024} KiB")
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        raise DamagedBonds("it is not JSON") from None
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise DamagedBonds(f"it is not version {VERSION}")
    listed = document.get("bonds")
    if not isinstance(listed, list) or len(listed) > MAX_BONDS:
        raise DamagedBonds(f"bonds is not a list of at most {MAX_BONDS}")
    return tuple(_bond(number, record) for number, record in enumerate(listed, 1))


def _bond(number: int, record: Any) -> Bond:
    if not isinstance(record, dict):
        raise DamagedBonds(f"bond {number} is no object")
    for key in _TEXTS:
        if not _is_text(record.get(key)):
            raise DamagedBonds(f"bond {number}: {key} is no text of at most {MAX_TEXT} characters")
    addresses = record.get("addresses")
    if (
        not isinstance(addresses, dict)
        or len(addresses) not in {1, 2}
        or not all(_is_text(a) for a in addresses.values())
    ):
        raise DamagedBonds(f"bond {number}: addresses are not one or two texts")
    paired_at = record.get("paired_at")
    if isinstance(paired_at, bool) or not isinstance(paired_at, int | float):
        raise DamagedBonds(f"bond {number}: paired_at is no number")
    fixed = MappingProxyType(dict(addresses))
    texts = {key: record[key] for key in _TEXTS}
    return Bond(**texts, addresses=fixed, paired_at=float(paired_at))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT


def _free_name(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.bad-{number}")).exists():
        number += 1
    return aside


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_atomic(path, content)
