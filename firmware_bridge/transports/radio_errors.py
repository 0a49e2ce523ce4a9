"""Maps errors of bleak, BlueZ and our backend to a reason, a message and a hint, in one table."""

import re
from enum import Enum
from typing import Final, NamedTuple

from firmware_bridge.errors import RadioError, RadioReason

RADIOS: Final = "bluez, usb:N, tcp:HOST:PORT or inproc"


class _Rule(NamedTuple):
    """`says` replaces a text that people would not understand."""

    pattern: str
    reason: RadioReason
    hint: str
    says: str = ""


_PAIR: Final = "pair again: glassd pair"
_NEAR: Final = "switch the glasses on and bring them near"
_RULES: Final = (
    _Rule(
        r"No module named '(bumble|bleak|usb1|dbus_fast)",
        RadioReason.NO_ADAPTER,
        "install it: pip install 'glassd[sim]'",
    ),
    _Rule(
        r"virtual adapter is busy",
        RadioReason.BUSY,
        "another daemon uses this mock: stop it, or start a second mock on another port",
    ),
    _Rule(
        r"no virtual adapter|HCI stream ended|does not speak HCI|virtual adapter reads nothing",
        RadioReason.NO_ADAPTER,
        "start the mock: glassd sim mock:display --radio {radio}",
    ),
    _Rule(
        r"no Bluetooth dongle|dongle is gone",
        RadioReason.NO_ADAPTER,
        "plug the dongle in; check that glassd may open it (udev)",
    ),
    _Rule(
        r"POWERED_OFF|not powered|No powered Bluetooth adapters|NotReady|Resource Not Ready",
        RadioReason.POWERED_OFF,
        "bluetoothctl power on (and: rfkill unblock bluetooth)",
    ),
    _Rule(
        r"FileNotFoundError|ConnectionRefusedError|org\.bluez.*not "
        r"provided|ServiceUnknown|DBUS_SYSTEM_BUS|name is not activatable"
        # D-Bus asked systemd to start it: masked, not there, failed
        r"|org\.freedesktop\.systemd1\.|DBus\.Error\.Spawn|dbus-org\.bluez"
        r"|NameHasNoOwner|bluetoothd is gone|D-Bus is "
        r"gone|EOFError|BrokenPipeError|ConnectionResetError|Disconnected by user",
        RadioReason.NO_SERVICE,
        "systemctl start bluetooth (BlueZ and D-Bus must be "
        "installed and running), or choose another "
        "radio: " + RADIOS,
        "the Bluetooth service cannot be reached",
    ),
    _Rule(
        r"PermissionError|AccessDenied|DENIED_|NotAuthorized\b.*sender",
        RadioReason.NOT_ALLOWED,
        "let this user talk to org.bluez: add it to the group bluetooth",
    ),
    _Rule(
        r"NO_BLUETOOTH|No Bluetooth adapters|[Aa]dapter.*(not found|is gone)|NO_BLE_CENTRAL_ROLE",
        RadioReason.NO_ADAPTER,
        "plug in a Bluetooth adapter, or choose another radio: " + RADIOS,
    ),
    _Rule(r"our key any more.*disconnected", RadioReason.BOND_DOUBT, _PAIR),
    _Rule(
        r"PIN_OR_KEY_MISSING|MIC_FAILURE|[Kk]ey [Mm]issing|keys not found|our key any more",
        RadioReason.BOND_LOST,
        _PAIR,
        "the glasses do not know our key any more",
    ),
    _Rule(
        r"[Nn]o agent",
        RadioReason.NO_AGENT,
        "pair with glassd, which answers for the glasses: glassd pair",
    ),
    _Rule(
        r"AuthenticationFailed|AuthenticationRejected|AuthenticationCanceled|AuthenticationTimeout",
        RadioReason.REFUSED,
        _PAIR,
    ),
    _Rule(
        r"INSUFFICIENT_|Insufficient (Auth|Encr)|Not paired",
        RadioReason.NOT_PAIRED,
        "pair them: glassd pair",
        "the glasses let only paired ones write",
    ),
    _Rule(
        r"AlreadyConnected|CONNECTION_ALREADY_EXISTS|LIMITED_RESOURCES|connected elsewhere",
        RadioReason.CONNECTED_ELSEWHERE,
        "another phone or program holds the glasses: disconnect them there",
    ),
    _Rule(
        r"br-connection-|le-connection-|ConnectionAttemptFailed|device "
        r"disconnected|disconnected during|connection failed"
        r"|Not connected|CONNECTION_FAILED_TO_BE_ESTABLISHED|Input/output "
        r"error|Software caused connection abort|Disconnected",
        RadioReason.LINK_FAILED,
        "bring the glasses nearer; Wi-Fi on the same chip can be in the way",
    ),
    _Rule(
        r"InProgress|Operation already in progress|in use",
        RadioReason.BUSY,
        "another program is scanning or connecting; it passes, or: systemctl restart bluetooth",
    ),
    _Rule(
        r"[Cc]haracteristic|INVALID_HANDLE|Invalid handle|Service "
        r"Discovery has not|Notify acquired",
        RadioReason.STALE_CACHE,
        "these are other glasses than their advertisement says; update their firmware",
    ),
    _Rule(
        r"DeviceNotFound|not found|UnknownObject|UnknownMethod|DoesNotExist|removed from BlueZ",
        RadioReason.NOT_FOUND,
        _NEAR,
    ),
    _Rule(
        r"TimeoutError|timed out|NoReply",
        RadioReason.TIMEOUT,
        "bring the glasses near; switch them off and on",
    ),
)
"""Error texts of bleak 3.1, BlueZ and our own backend; first match wins."""

_WHEN_BONDED: Final = {
    RadioReason.LINK_FAILED: RadioReason.BOND_DOUBT,
    RadioReason.NOT_PAIRED: RadioReason.BOND_LOST,
}
"""For bonded glasses the same texts mean something else: BlueZ reports a key mismatch as
`br-connection-canceled`, or as a link that drops while being established.
"""
MTU_STUCK: Final = (
    "the glasses carry only 20 bytes a packet, so pages come slowly: "
    "switch them off and on; update their firmware"
)

_PLAIN: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


def classify(
    error: BaseException, doing: str, *, radio: str = "tcp:HOST:PORT", bonded: bool = False
) -> RadioError:
    """Return reason, message and hint of bleak's error; `bonded`: we have a key for the glasses."""
    words = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
    detail = _PLAIN.sub(" ", words).strip()[:300]  # remote text: no control characters, one line
    more = _PLAIN.sub(" ", " ".join(map(str, error.args[1:])))[
        :300
    ]  # D-Bus errors: the name first, then the text
    code = getattr(getattr(error, "reason", None), "name", "") or getattr(
        getattr(error, "code", None), "name", ""
    )
    whole_text = f"{type(error).__name__}: {detail} {more} {code}"
    # bleak's own name for it, meaningless to users
    named = isinstance(getattr(error, "reason", None), Enum)
    text = detail if named else f"{detail} {more}".strip()
    for rule in _RULES:
        if re.search(rule.pattern, whole_text):
            said = rule.says or text or type(error).__name__
            reason = _WHEN_BONDED.get(rule.reason, rule.reason) if bonded else rule.reason
            hint = _PAIR if reason is RadioReason.BOND_LOST else rule.hint.replace("{radio}", radio)
            return RadioError(reason, f"{doing}: {said}", hint)
    return RadioError(RadioReason.OTHER, f"{doing}: {text or type(error).__name__}")
