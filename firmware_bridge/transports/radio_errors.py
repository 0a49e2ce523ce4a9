"""What bleak, BlueZ and our own backend say when something is wrong, and what a person can do about it.

The one reader of their texts; knows no connections and no glasses.
"""

import re
from typing import Final, NamedTuple

from firmware_bridge.errors import RadioError, RadioReason

RADIOS: Final = "bluez, usb:N, tcp:HOST:PORT or inproc"


class _Rule(NamedTuple):
    """`says` replaces a text that would mean nothing to a person."""

    pattern: str
    reason: RadioReason
    hint: str
    says: str = ""


_RULES: Final = (
    _Rule(r"No module named '(bumble|bleak|usb1)", RadioReason.NO_ADAPTER, "install it: pip install 'glassd[sim]'"),
    _Rule(r"virtual adapter is busy", RadioReason.BUSY,
          "another daemon uses this mock: stop it, or start a second mock on another port"),
    _Rule(r"no virtual adapter|HCI stream ended|does not speak HCI|virtual adapter reads nothing", RadioReason.NO_ADAPTER,
          "start the mock: glassd sim mock:display --radio {radio}"),
    _Rule(r"no Bluetooth dongle|dongle is gone", RadioReason.NO_ADAPTER, "plug the dongle in; check that we may open it (udev)"),
    _Rule(r"POWERED_OFF|not powered|No powered Bluetooth adapters|NotReady|Resource Not Ready", RadioReason.POWERED_OFF,
          "bluetoothctl power on (and: rfkill unblock bluetooth)"),
    _Rule(r"FileNotFoundError|ConnectionRefusedError|org\.bluez.*not provided|ServiceUnknown|DBUS_SYSTEM_BUS|name is not activatable",
          RadioReason.NO_SERVICE, "systemctl start bluetooth (BlueZ and D-Bus must be installed and running), or choose another "
          "radio: " + RADIOS, "the Bluetooth service cannot be reached"),
    _Rule(r"PermissionError|AccessDenied|DENIED_|NotAuthorized\b.*sender", RadioReason.REFUSED,
          "let this user talk to org.bluez: add it to the group bluetooth"),
    _Rule(r"NO_BLUETOOTH|No Bluetooth adapters|adapter.*not found|NO_BLE_CENTRAL_ROLE", RadioReason.NO_ADAPTER,
          "plug in a Bluetooth adapter, or choose another radio: " + RADIOS),
    _Rule(r"InProgress|Operation already in progress|in use", RadioReason.BUSY,
          "another program is scanning or connecting; it passes, or: systemctl restart bluetooth"),
    _Rule(r"AuthenticationFailed|AuthenticationRejected|INSUFFICIENT_|PIN_OR_KEY_MISSING", RadioReason.REFUSED,
          "pair again: glassd unpair, then glassd pair"),
    _Rule(r"DeviceNotFound|not found|UnknownObject|removed from BlueZ", RadioReason.NOT_FOUND,
          "switch the glasses on and bring them near"),
    _Rule(r"TimeoutError|timed out", RadioReason.TIMEOUT, "bring the glasses near; switch them off and on"),
)  # fmt: skip
"""Every text by which bleak, BlueZ or our own backend says what is wrong, first match wins (facts: lab, bleak 3.1)."""


_PLAIN: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


def classify(error: BaseException, doing: str, *, radio: str = "tcp:HOST:PORT") -> RadioError:
    """Turn whatever bleak raised into a reason, a sentence and the next thing a person can do."""
    words = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
    detail = _PLAIN.sub(" ", words).strip()[:300]  # remote text: no control characters, one line
    told = f"{type(error).__name__}: {detail} {getattr(getattr(error, 'reason', None), 'name', '')}"
    for rule in _RULES:
        if re.search(rule.pattern, told):
            said = rule.says or detail or type(error).__name__
            return RadioError(rule.reason, f"{doing}: {said}", rule.hint.replace("{radio}", radio))
    return RadioError(RadioReason.OTHER, f"{doing}: {detail or type(error).__name__}")
