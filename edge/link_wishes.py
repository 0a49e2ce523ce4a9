"""What somebody wanted of the glasses and what they forget with the link: settings, an open microphone.

Refuses to ask for anything by itself, and to remember over a restart: glasses keep their settings, nobody's microphone
opens by itself.
"""

from firmware_bridge.messages import (
    AllowApps,
    Command,
    SetBrightness,
    SetHeadUpAngle,
    SetSilentMode,
    SetWearDetection,
    StartMicrophone,
    StopMicrophone,
)

_SETTINGS = (SetBrightness, SetSilentMode, SetWearDetection, SetHeadUpAngle, AllowApps)


class Wishes:
    """The newest wish of each kind that these glasses granted, in the order in which they were first wished."""

    def __init__(self) -> None:
        self._address = ""
        self._granted: dict[object, Command] = {}

    def granted(self, command: Command) -> None:
        """The glasses carried `command` out."""
        match command:
            case StartMicrophone(stream=stream):
                self._granted["microphone", stream] = command
            case StopMicrophone(stream=stream):
                self._granted.pop(("microphone", stream), None)
            case _ if isinstance(command, _SETTINGS):
                self._granted[type(command)] = command

    def of(self, address: str) -> tuple[Command, ...]:
        """What to tell the glasses at `address` again; other glasses begin with nothing."""
        if address != self._address:
            self._address = address
            self._granted.clear()
        return tuple(self._granted.values())

    def refused(self, command: Command) -> None:
        """The glasses do not want this any more."""
        self._granted = {key: kept for key, kept in self._granted.items() if kept is not command}
