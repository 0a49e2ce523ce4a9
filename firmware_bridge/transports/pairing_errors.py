"""Maps pairing errors of BlueZ and bumble to a reason, a message and a hint, in one table."""

import re
from typing import Final, NamedTuple

from firmware_bridge.bonding import PROVED, PairingError, PairingReason, Witness
from firmware_bridge.transports.radio_errors import classify

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
        return _failure(_DECLINED, doing)
    if witness.how in PROVED and re.search(_FAILED_CHECK, text):
        return _failure(_WRONG, doing)
    for rule in _RULES:
        if re.search(rule.pattern, text):
            return _failure(rule, doing)
    radio = classify(error, doing)
    return PairingError(_R.OTHER, str(radio), radio.hint or _AGAIN)


def _failure(rule: _PairingRule, doing: str) -> PairingError:
    return PairingError(rule.reason, f"{doing}: {rule.says}", rule.hint)
