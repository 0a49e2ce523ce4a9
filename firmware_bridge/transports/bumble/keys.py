"""Identity and bonds of a bumble host stack, in memory or in a private file."""

import asyncio
import contextlib
import json
import logging
import secrets
from pathlib import Path
from typing import Any, Final

from bumble import hci
from bumble.keys import KeyStore, PairingKeys

from firmware_bridge.files import write_atomic

log = logging.getLogger(__name__)

VERSION: Final = 1
MAX_FILE: Final = 256 * 1024
"""A bond has under 1 KiB."""
MAX_BONDS: Final = 64
IRK_BYTES: Final = 16


class KeyFile(KeyStore):
    """Implements bumble's key store. `address` and `irk` are created once and kept: peers recognise
    us by them.

    `at_once` writes synchronously, for glasses: bumble does not report "paired" if the link ends
    meanwhile.
    """

    def __init__(
        self, path: Path | None = None, *, address: str | None = None, at_once: bool = False
    ) -> None:
        self._path = path
        self._at_once = at_once
        self._bonds: dict[str, PairingKeys] = {}
        self._writing = asyncio.Lock()
        self.irk = secrets.token_bytes(IRK_BYTES)
        self.address = address or hci.Address.generate_static_address().to_string(False)
        if path is not None:
            self._load(path, fixed=address is not None)

    def known(self, name: str) -> PairingKeys | None:
        """Return a peer's keys by bumble's spelling of its identity address, without waiting."""
        return self._bonds.get(name)

    @property
    def bonded(self) -> bool:
        return bool(self._bonds)

    # -------------------------------------------------------------- bumble's key store

    async def get(self, name: str) -> PairingKeys | None:
        return self._bonds.get(name)

    async def get_all(self) -> list[tuple[str, PairingKeys]]:
        return list(self._bonds.items())

    async def get_resolving_keys(self) -> list[tuple[bytes, hci.Address]]:
        """Return none: with one, bumble 0.0.236 scans uncancellably before each connection."""
        return []

    async def update(self, name: str, keys: PairingKeys) -> None:
        self._bonds.pop(name, None)
        self._bonds[name] = keys
        while len(self._bonds) > MAX_BONDS:  # the oldest goes, as in any glasses
            del self._bonds[next(iter(self._bonds))]
        await self._save()

    async def delete(self, name: str) -> None:
        if self._bonds.pop(name, None) is not None:
            await self._save()

    async def delete_all(self) -> None:
        if self._bonds:
            self._bonds.clear()
            await self._save()

    # -------------------------------------------------------------- the file

    def _load(self, path: Path, *, fixed: bool) -> None:
        try:
            with path.open("rb") as file:
                raw = file.read(MAX_FILE + 1)
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning(
                "the keys in %s cannot be read (%s): glasses must be paired again",
                path,
                error.strerror,
            )
            return
        try:
            irk, address, bonds = _parse(raw)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as damaged:
            aside = path.with_name(path.name + ".bad")
            with contextlib.suppress(OSError):
                path.replace(aside)
            log.warning(
                "the keys in %s are damaged (%s) and were put aside as "
                "%s: glasses must be paired again",
                path,
                damaged,
                aside,
            )
            return
        self.irk, self._bonds = irk, bonds
        if not fixed:
            self.address = address

    async def _save(self) -> None:
        """Save; writes are in turn and not cancelled, so the newest keys are written last."""
        if self._path is None:
            return
        if self._at_once:
            write_atomic(self._path, self._content())
        else:
            await asyncio.shield(self._saved(self._path))

    async def _saved(self, path: Path) -> None:
        async with self._writing:
            await asyncio.to_thread(write_atomic, path, self._content())

    def _content(self) -> bytes:
        document = {
            "version": VERSION,
            "address": self.address,
            "irk": self.irk.hex(),
            "bonds": {name: keys.to_dict() for name, keys in self._bonds.items()},
        }
        return json.dumps(document, indent=1).encode()


def _parse(raw: bytes) -> tuple[bytes, str, dict[str, PairingKeys]]:
    if len(raw) > MAX_FILE:
        raise ValueError(f"it has more than {MAX_FILE // 1024} KiB")
    document: dict[str, Any] = json.loads(raw)
    if document["version"] != VERSION:
        raise ValueError(f"version {document['version']!r}; this glassd reads {VERSION}")
    irk = bytes.fromhex(document["irk"])
    if len(irk) != IRK_BYTES:
        raise ValueError("the identity key has the wrong length")
    address = hci.Address(document["address"]).to_string(False)
    return (
        irk,
        address,
        {str(name): PairingKeys.from_dict(keys) for name, keys in document["bonds"].items()},
    )
