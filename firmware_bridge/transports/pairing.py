"""Pairs with glasses and removes bonds, on BlueZ and on our own host stack.

Success depends on whether a code was really asked for, not on what the host stack reports.
"""

import logging
import re
from typing import Any, Final, NamedTuple

from firmware_bridge.bonding import (
    PROVED,
    Asker,
    Bonding,
    How,
    PairingError,
    PairingReason,
    Proof,
    Witness,
)
from firmware_bridge.deadlines import timeout
from firmware_bridge.errors import RadioError
from firmware_bridge.models import Pairing
from firmware_bridge.transports.ble import Radio, Sighting
from firmware_bridge.transports.radio_errors import classify

log = logging.getLogger(__name__)

CONNECT_S: Final = 20.0
CLOSE_S: Final = 3.0
"""Seconds for a disconnect; bluetoothd takes about 2 s (measured 1.9 to 2.7)."""


async def pair(radio: Radio, sighting: Sighting, asker: Asker, *, timeout_s: float) -> Proof:
    """Connect, pair, disconnect. Glasses bonded with us must first be removed (`unpair`) and
    scanned for again. Raises `PairingError` and `RadioError`.
    """
    witness = Witness(asker)
    doing = f"pairing with {sighting.address}"
    async with radio.lock:
        try:
            if radio.open is not None:
                await radio.open()
            async with timeout(timeout_s), _bonding(radio).asking(sighting.address, witness):
                address = await _bonded(radio, sighting)
        except (RadioError, PairingError):
            raise
        # bleak raises its own, D-Bus's and the operating system's errors alike
        except Exception as error:
            raise why_unpaired(error, witness, doing) from error
    if sighting.entry.pairing is Pairing.NONE:
        return Proof(How.NONE, address)
    proof = Proof(witness.how, address)
    if sighting.entry.pairing is Pairing.CODE and not proof.proved:
        await unpair(radio, address)
        raise PairingError(
            PairingReason.UNPROVEN,
            f"{doing}: it went through without a code, "
            "though these glasses can show one; it was undone",
            "another device may be answering in their place: "
            "move away from other people's devices, restart the glasses, "
            "then: glassd pair",
        )
    return proof


async def _bonded(radio: Radio, sighting: Sighting) -> str:
    """Create the bond (without pairing: only connect); return the glasses' identity address."""
    from bleak import BleakClient  # noqa: PLC0415 - 8 MiB that a daemon without radio does not need

    options = {} if radio.client is None else {"backend": radio.client}
    client = BleakClient(sighting.device, timeout=CONNECT_S, **options)
    try:
        try:
            await client.connect()
        except Exception as error:  # as in pair
            raise classify(
                error, f"connecting to {sighting.address}", radio=radio.moniker
            ) from error
        if sighting.entry.pairing is not Pairing.NONE:
            await client.pair()
        return str(client.address)
    finally:
        await _hang_up(client)


async def _hang_up(client: Any) -> None:
    try:
        async with timeout(CLOSE_S):
            await client.disconnect()
    except Exception as error:  # noqa: BLE001 - the bond stands or falls without it; as in pair
        log.debug("disconnecting after pairing: %s", classify(error, "disconnecting"))


async def unpair(radio: Radio, address: str) -> bool:
    """Delete our bond with an address; False if there was none. Raises `RadioError`."""
    async with radio.lock:
        try:
            return await _bonding(radio).forget(address)
        except Exception as error:  # as in pair
            raise classify(error, f"unpairing {address}", radio=radio.moniker) from error


def _bonding(radio: Radio) -> Bonding:
    if radio.bonding is not None:
        return radio.bonding
    from firmware_bridge.transports.bluez.agent import BluezBonding  # noqa: PLC0415 - dbus-fast costs 3 MiB, needed only for pairing

    return BluezBonding()


_R = PairingReason


class _PairingRule(NamedTuple):
    pattern: str
    reason: PairingReason
    says: str
    hint: str


_AGAIN: Final = "try again: glassd pair"
_MODE: Final = (
    "put the glasses into pairing mode (their manual says how; "
    "a reset does it too), then: glassd pair"
)
_WRONG: Final = _PairingRule(
    "", _R.WRONG_CODE, "the code was wrong", "look at the new code on the lens and " + _AGAIN
)
_DECLINED: Final = _PairingRule(
    "", _R.NOT_ANSWERED, "the code was not given or not confirmed in time", _AGAIN
)

_RULES: Final = (
    _PairingRule(
        r"REPEATED_ATTEMPTS",
        _R.REFUSED,
        "the glasses require a pause after too many tries",
        "wait half a minute, then: glassd pair",
    ),
    _PairingRule(
        r"PAIRING_NOT_SUPPORTED|PAIRING_NOT_ALLOWED|AuthenticationRejected",
        _R.REFUSED,
        "the glasses refuse to be paired",
        _MODE,
    ),
    _PairingRule(
        r"no key of LE Secure|AUTHENTICATION_REQUIREMENTS|ENCRYPTION_KEY_SIZE",
        _R.REFUSED,
        "the glasses pair in an old way that is not safe",
        "update their firmware",
    ),
    _PairingRule(
        r"AuthenticationTimeout|TimeoutError|timed out",
        _R.TIMEOUT,
        "the glasses did not answer in time",
        "bring them near and " + _AGAIN,
    ),
    _PairingRule(r"AuthenticationCanceled", _R.NOT_ANSWERED, "pairing was cancelled", _AGAIN),
    _PairingRule(
        r"disconnected during|ConnectionAttemptFailed|Not "
        r"connected|not connected|Service Discovery has not",
        _R.LOST,
        "the glasses went away while they were paired",
        "bring them near and " + _AGAIN,
    ),
    _PairingRule(r"AuthenticationFailed", _R.REFUSED, "the glasses refuse to be paired", _MODE),
)
"""First match wins (org.bluez.Device1.Pair; Core 5.4, Vol 3, Part H, 3.5.5; own measurements)."""
_FAILED_CHECK: Final = (
    r"CONFIRM_VALUE_FAILED|DHKEY_CHECK_FAILED|PASSKEY_ENTRY_FAILED|AuthenticationFailed"
)


def why_unpaired(error: BaseException, witness: Witness, doing: str) -> PairingError:
    """Return the error of a pairing; failed authentication after a code means a wrong code."""
    text = f"{type(error).__name__}: {error} {getattr(error, 'dbus_error', '')}"
    if witness.declined:
        rule: _PairingRule | None = _DECLINED
    elif witness.how in PROVED and re.search(_FAILED_CHECK, text):
        rule = _WRONG
    else:
        rule = next((each for each in _RULES if re.search(each.pattern, text)), None)
    if rule is not None:
        return PairingError(rule.reason, f"{doing}: {rule.says}", rule.hint)
    radio = classify(error, doing)
    return PairingError(_R.OTHER, str(radio), radio.hint or _AGAIN)
