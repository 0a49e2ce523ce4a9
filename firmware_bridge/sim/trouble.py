"""What is wrong with one radio of a mock right now; its link asks here about every packet.

Knows packets only by number; who wants trouble, and when, is injector.py's business.
"""


class Trouble:
    """Nothing, until someone sets a field. `latency_s` is no trouble, but how long these
    glasses always take.
    """

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
        """How much later than at once everything that is sent arrives."""
        return self.latency_s + self.delay_s

    def loses(self) -> bool:
        """Say whether the packet that is sent now is lost on its way."""
        if not self.lose_every:
            self._sent = 0
            return False
        self._sent += 1
        return self._sent % self.lose_every == 0

    def refuses(self) -> bool:
        """Say whether the command that came now is refused, whatever it is."""
        if not self.refuse_every:
            self._asked = 0
            return False
        self._asked += 1
        return self._asked % self.refuse_every == 0
