"""The simulator's security manager: pairing method, bonds, and write permission."""

import asyncio
import logging
import secrets
import weakref
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Final

from bumble import att
from bumble.device import Connection, Device
from bumble.pairing import PairingConfig, PairingDelegate
from bumble.smp import ErrorCode as SmpError

from firmware_bridge.messages import Gesture
from firmware_bridge.models import Model, Pairing
from firmware_bridge.transports.bumble.keys import KeyFile

log = logging.getLogger(__name__)

TRIES: Final = 3
"""Wrong codes in a row before a pause: a guesser's chance is three in a million each time."""
PAUSE_S: Final = 30.0
FIRST_PASSKEY: Final = 1
"""Smallest passkey; bumble 0.0.236 treats 0 as "none yet" and never continues."""
LAST_PASSKEY: Final = 999_999


class PairingWay(StrEnum):
    """How these glasses are paired."""

    NONE = "none"
    JUST_WORKS = "just_works"
    PASSKEY = "passkey"
    COMPARE = "compare"


_OF_MODEL: Final = {
    Pairing.NONE: PairingWay.NONE,
    Pairing.JUST_WORKS: PairingWay.JUST_WORKS,
    Pairing.CODE: PairingWay.PASSKEY,
}
_IO: Final = {
    PairingWay.NONE: PairingDelegate.IoCapability.NO_OUTPUT_NO_INPUT,
    PairingWay.JUST_WORKS: PairingDelegate.IoCapability.NO_OUTPUT_NO_INPUT,
    PairingWay.PASSKEY: PairingDelegate.IoCapability.DISPLAY_OUTPUT_ONLY,
    PairingWay.COMPARE: PairingDelegate.IoCapability.DISPLAY_OUTPUT_AND_YES_NO_INPUT,
}
_YES: Final = frozenset({Gesture.TAP, Gesture.BUTTON, Gesture.NOD})
_NO: Final = frozenset({Gesture.DOUBLE_TAP, Gesture.BUTTON_LONG, Gesture.SHAKE})

_WRONG_CODE: Final = frozenset({SmpError.CONFIRM_VALUE_FAILED, SmpError.DHKEY_CHECK_FAILED})

Show = Callable[[Sequence[str], dict[str, Any]], None]
"""Shows lines on the lens (none: removes ours) and reports an event (empty: none)."""


def way_of(model: Model, wanted: str | None) -> tuple[PairingWay, bool]:
    """Return how a mock of this model is paired, and whether it must be before any write.

    With `wanted` it must. Else the model's own method applies, and any central may write until the
    first bond exists (PROFILE.md). Raises ValueError.
    """
    if wanted is None:
        return _OF_MODEL[model.pairing], False
    try:
        way = PairingWay(wanted.replace("-", "_"))
    except ValueError:
        raise ValueError(f"pairing {wanted!r}; {', '.join(PairingWay)} are known") from None
    if way in {PairingWay.PASSKEY, PairingWay.COMPARE} and not model.capabilities.get("display"):
        raise ValueError(f"pairing {way}: {model.key} has no lens to show a code on")
    return way, way is not PairingWay.NONE


class Security:
    """Pairing rules and bonds of simulated glasses; `attach` installs it in a bumble device."""

    def __init__(
        self,
        way: PairingWay,
        *,
        required: bool,
        keys: KeyFile,
        show: Show,
        clock: Callable[[], float],
        below: Callable[[int], int] = secrets.randbelow,
    ) -> None:
        self.way = way
        self.required = required
        self.keys = keys
        self.refusing = False
        """A fault: every pairing is refused."""
        self._show = show
        self._clock = clock
        self._below = below
        self._inviting = not keys.bonded
        self._wrong = 0
        self._pause_until = 0.0
        self._asked: asyncio.Future[bool] | None = None
        self._on_lens = False
        self._admitted: weakref.WeakSet[Connection] = weakref.WeakSet()

    def attach(self, device: Device) -> None:
        device.keystore = self.keys
        device.irk = self.keys.irk
        device.pairing_config_factory = self._config
        device.on("connection", self._connected)
        logging.getLogger("bumble.gatt_server").addFilter(_refused_command)

    # -------------------------------------------------------------- who may write

    @property
    def protected(self) -> bool:
        """Whether writing needs encryption: if pairing is required, or as soon as a bond exists."""
        return self.way is not PairingWay.NONE and (self.required or self.keys.bonded)

    def check(self, connection: Connection) -> None:
        """Raise the ATT error if this link may not write or subscribe; nothing is applied."""
        if not self.protected or connection in self._admitted:
            return
        if not connection.encryption:
            raise att.ATT_Error(error_code=att.ErrorCode.INSUFFICIENT_ENCRYPTION)
        # bumble 0.0.236 calls every encrypted LE link authenticated, Just Works included: ask the
        # key itself.
        bond = self.keys.known(str(connection.peer_address))
        key = bond.ltk if bond is not None else None
        if key is None or (self.way is not PairingWay.JUST_WORKS and not key.authenticated):
            raise att.ATT_Error(error_code=att.ErrorCode.INSUFFICIENT_AUTHENTICATION)
        # for the whole connection: a bond deleted meanwhile counts from the next one on
        self._admitted.add(connection)

    # -------------------------------------------------------------- what a wearer (or a fault) does

    @property
    def inviting(self) -> bool:
        """Whether pairing mode is on: while there is no bond, and after `invite`."""
        return self._inviting

    def invite(self) -> None:
        self._inviting = True

    async def forget(self) -> None:
        """Forget every bond, as a reset does; open links stay. Pairing mode is on again."""
        await self.keys.delete_all()
        self._inviting, self._wrong, self._pause_until = True, 0, 0.0

    def refuse(self, *, on: bool = True) -> None:
        self.refusing = on

    def gesture(self, gesture: Gesture) -> bool:
        """Let a gesture answer the number comparison. False if none is open."""
        if self._asked is None or self._asked.done() or gesture not in _YES | _NO:
            return False
        self._asked.set_result(gesture in _YES)
        return True

    # -------------------------------------------------------------- pairing

    def may_pair(self, connection: Connection) -> bool:
        """Return whether pairing is allowed now; bonded centrals may pair again with a code."""
        if self.way is PairingWay.NONE or self.refusing or self._clock() < self._pause_until:
            return False
        known = self.keys.known(str(connection.peer_address)) is not None
        return self._inviting or (known and self.way is not PairingWay.JUST_WORKS)

    def passkey(self) -> int:
        """Return a new random code."""
        return FIRST_PASSKEY + self._below(LAST_PASSKEY - FIRST_PASSKEY + 1)

    def show_code(self, number: int) -> None:
        code = f"{number:06d}"
        self._tell(
            ("Pairing", "", f"{code[:3]} {code[3:]}", "", "type this code"),
            {"event": "pairing", "passkey": code},
        )

    async def same(self, number: int) -> bool:
        """Ask the wearer whether the other side shows this number too."""
        code = f"{number:06d}"
        self._asked = asyncio.get_running_loop().create_future()
        title, keys = "Pairing: the same number there?", "tap: yes · double tap: no"
        lines = (title, "", f"{code[:3]} {code[3:]}", "", keys)
        self._tell(lines, {"event": "pairing", "number": code})
        try:
            return await self._asked
        finally:
            self._asked = None

    def _tell(self, lines: Sequence[str], event: dict[str, Any]) -> None:
        if lines or event or self._on_lens:
            self._show(lines, event)
        self._on_lens = bool(lines)

    def _config(self, connection: Connection) -> PairingConfig:
        return PairingConfig(
            sc=True,
            mitm=_IO[self.way] is not _IO[PairingWay.NONE],
            bonding=True,
            delegate=_Delegate(self, connection),
            identity_address_type=PairingConfig.AddressType.RANDOM,
        )

    def _connected(self, connection: Connection) -> None:
        connection.on(connection.EVENT_PAIRING, lambda _keys: self._paired(connection))
        connection.on(
            connection.EVENT_PAIRING_FAILURE, lambda reason: self._failed(connection, reason)
        )
        connection.on(connection.EVENT_DISCONNECTION, lambda _reason: self._tell((), {}))

    def _paired(self, connection: Connection) -> None:
        self._inviting, self._wrong = False, 0
        peer = connection.peer_address.to_string(False)
        self._tell((), {"event": "paired", "peer": peer, "how": self.way.value})

    def _failed(self, connection: Connection, reason: int) -> None:
        # bumble 0.0.236 keeps a failed session, which would swallow the next attempt on this link.
        connection.device.smp_manager.sessions.pop(connection.handle, None)
        self._wrong += reason in _WRONG_CODE
        if self._wrong >= TRIES:
            self._wrong, self._pause_until = 0, self._clock() + PAUSE_S
        self._tell((), {"event": "pairing.failed", "reason": getattr(reason, "name", str(reason))})


class _Delegate(PairingDelegate):
    """Forwards bumble's questions about one connection to `Security`."""

    def __init__(self, security: Security, connection: Connection) -> None:
        super().__init__(io_capability=_IO[security.way])
        self._security = security
        self._connection = connection

    async def accept(self) -> bool:
        return self._security.may_pair(self._connection)

    async def confirm(self, auto: bool = False) -> bool:  # noqa: ARG002, FBT001, FBT002 - bumble's signature
        return True

    async def generate_passkey(self) -> int:
        return self._security.passkey()

    async def display_number(self, number: int, digits: int) -> None:  # noqa: ARG002 - as above
        self._security.show_code(number)

    async def compare_numbers(self, number: int, digits: int) -> bool:  # noqa: ARG002 - as above
        return await self._security.same(number)


def _refused_command(record: logging.LogRecord) -> bool:
    """Drop log records of refused writes without response: such a refusal is no error."""
    return not (record.exc_info and isinstance(record.exc_info[1], att.ATT_Error))
