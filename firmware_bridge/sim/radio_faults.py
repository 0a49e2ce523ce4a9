"""The faults of one simulated radio, set by fault_injector.py and applied to every packet."""


class RadioFaults:
    """No faults until a field is set. `latency_s`: the normal delay of these glasses."""

    def __init__(self) -> None:
        self.latency_s = 0.0
        self.lose_every = 0
        self.refuse_every = 0
        self.delay_s = 0.0
        self.cutting = False
        self._sent = 0
        self._asked = 0

    @property
    def late_s(self) -> float:
        """Seconds by which sent packets are delayed."""
        return self.latency_s + self.delay_s

    def loses(self) -> bool:
        """Return whether the packet being sent is lost."""
        if not self.lose_every:
            self._sent = 0
            return False
        self._sent += 1
        return self._sent % self.lose_every == 0

    def refuses(self) -> bool:
        """Return whether the current command is refused, whatever it is."""
        if not self.refuse_every:
            self._asked = 0
            return False
        self._asked += 1
        return self._asked % self.refuse_every == 0
