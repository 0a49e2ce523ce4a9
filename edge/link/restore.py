"""Settings, which the glasses forget with the link and get back after it.

Not over a restart of the daemon: glasses keep settings and report at each connection whether they
can be seen. A microphone is never opened here: `hearing/listening.py` alone decides that.
"""

from typing import Final

from firmware_bridge.messages import (
    AllowApps,
    Command,
    Hiding,
    HidingChanged,
    OwnCommand,
    SetBrightness,
    SetHeadUpAngle,
    SetSilentMode,
    SetWearDetection,
)

_SETTINGS = (SetBrightness, SetSilentMode, SetWearDetection, SetHeadUpAngle, AllowApps)
_SET: Final = (Hiding.SILENT, Hiding.DARK)
"""What hides a page until a setting changes; anything else ends by itself."""
MOST_GLASSES: Final = 8
"""Other glasses of which the dark lens is remembered."""


class RestoredSettings:
    """The newest setting of each kind that these glasses accepted, in the order of the first."""

    def __init__(self) -> None:
        self._address = ""
        self._granted: dict[object, Command] = {}
        self._unsure: dict[object, Command] = {}
        self._hidden: dict[Hiding, bool] = {}
        self._others: dict[str, tuple[dict[Hiding, bool], dict[object, Command]]] = {}

    def accept(self, command: Command) -> None:
        """The glasses carried `command` out."""
        self._unsure.pop(type(command), None)
        own = isinstance(command, OwnCommand) and command.is_setting
        if own or isinstance(command, _SETTINGS):
            self._granted[type(command)] = command
            self._hidden.update(_hidden_by(command))

    def report_hiding(self, event: HidingChanged) -> None:
        """The glasses report the page hidden or visible, which is newer than any setting."""
        self._hidden[event.by] = event.hidden
        self._unsure = {
            key: setting
            for key, setting in self._unsure.items()
            if event.by not in _hidden_by(setting)
        }

    def doubt(self, command: Command) -> None:
        """`command` may have been carried out: assume so while it would hide the lens."""
        if _why_unseen(command):
            self._unsure[type(command)] = command

    @property
    def unseen(self) -> str:
        """Why nobody sees what is on the lens until a setting changes; "" if it can be seen."""
        if sure := next((by.value for by in _SET if self._hidden.get(by)), ""):
            return sure
        unsure = next(map(_why_unseen, self._unsure.values()), "")
        return f"perhaps {unsure}: it was set without an answer; set it again" if unsure else ""

    @property
    def covered(self) -> str:
        """What the glasses show over the page for a while; "" if nothing."""
        covering = (by.value for by, hidden in self._hidden.items() if hidden and by not in _SET)
        return next(covering, "")

    def of(self, address: str) -> tuple[Command, ...]:
        """Return what to send to the glasses at `address` again: nothing if others were connected
        meanwhile, nor what the wearer has changed. Whether each lens is dark is remembered.
        """
        if address != self._address:
            self._others[self._address] = self._hidden, self._unsure
            self._hidden, self._unsure = self._others.pop(address, ({}, {}))
            if len(self._others) > MOST_GLASSES:
                del self._others[next(iter(self._others))]
            self._address = address
            self._granted.clear()
        self._hidden = {by: hidden for by, hidden in self._hidden.items() if by in _SET}
        self._granted = {
            key: setting
            for key, setting in self._granted.items()
            if _hidden_by(setting).items() <= self._hidden.items()
        }
        return tuple(self._granted.values())

    def refuse(self, command: Command) -> None:
        """The glasses refused this now: do not send it again, but its effect may still last."""
        for by in _hidden_by(command):
            self._hidden.pop(by, None)
        self._granted = {key: each for key, each in self._granted.items() if each is not command}
        self.doubt(command)


def _why_unseen(command: Command) -> str:
    return next((by.value for by, hidden in _hidden_by(command).items() if hidden), "")


def _hidden_by(command: Command) -> dict[Hiding, bool]:
    match command:
        case SetSilentMode(on):
            return {Hiding.SILENT: on}
        case SetBrightness(level, auto):
            return {Hiding.DARK: level == 0 and not auto}
    return {}
