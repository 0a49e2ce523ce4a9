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

    @property
    def unseen(self) -> str:
        """Why nobody sees what is on the lens; "" when nothing was wished that hides it."""
        silent, brightness = self._granted.get(SetSilentMode), self._granted.get(SetBrightness)
        if isinstance(silent, SetSilentMode) and silent.on:
            return "the glasses are in silent mode"
        dark = isinstance(brightness, SetBrightness) and brightness.level == 0 and not brightness.auto
        return "the brightness of the display is 0" if dark else ""

    def of(self, address: str) -> tuple[Command, ...]:
        """What to tell the glasses at `address` again; other glasses begin with nothing."""
        if address != self._address:
            self._address = address
            self._granted.clear()
        return tuple(self._granted.values())

    def refused(self, command: Command) -> None:
        """The glasses do not want this any more."""
        self._granted = {key: kept for key, kept in self._granted.items() if kept is not command}
