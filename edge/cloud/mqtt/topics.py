"""The name of every MQTT topic, and which words may be a level of one."""

from typing import Final

from msgspec import Struct


class BadTopicWord(ValueError):
    """A tenant, edge id, pool or event kind that cannot be one level of a topic."""


def check_word(name: str, word: str) -> str:
    """Return `word` back when it can be one topic level. Raise BadTopicWord."""
    bad = any(c in "/+#$" or not c.isprintable() or c.isspace() for c in word)
    if bad or not 0 < len(word) <= 64:
        fix = "use 1 to 64 printable characters without / + # $ or space"
        raise BadTopicWord(f"{name} is {repr(word)[:60]}: {fix}")
    return word


class Topics(Struct, frozen=True):
    """Every topic of one edge; `for_cloud` makes the filters a cloud subscribes to."""

    tenant: str
    edge_id: str

    def __post_init__(self) -> None:
        check_word("tenant", self.tenant)
        if self.edge_id != "+":
            check_word("edge_id", self.edge_id)

    @classmethod
    def for_cloud(cls, tenant: str) -> "Topics":
        """Return the same names as filters over all edges of a tenant."""
        return cls(tenant, "+")

    @property
    def prefix(self) -> str:
        return f"glassd/v1/{self.tenant}/e/{self.edge_id}"

    def own(self, topic: str) -> str:
        """Return the same topic under this edge's prefix: it may have waited for another cloud."""
        levels = topic.split("/", 5)
        ours = len(levels) == 6 and levels[:2] == ["glassd", "v1"] and levels[3] == "e"
        return f"{self.prefix}/{levels[5]}" if ours else topic

    @property
    def presence(self) -> str:
        return f"{self.prefix}/presence"

    @property
    def capabilities(self) -> str:
        return f"{self.prefix}/capabilities"

    @property
    def result(self) -> str:
        return f"{self.prefix}/result"

    @property
    def cancel(self) -> str:
        return f"{self.prefix}/cancel"

    @property
    def invoke(self) -> str:
        """Kind `call` for a tool of the edge, `cancel` to stop one: one topic, so in order."""
        return f"{self.prefix}/invoke"

    @property
    def delivery(self) -> str:
        return f"{self.prefix}/delivery"

    def call(self, pool: str) -> str:
        return f"{self.prefix}/call/{check_word('pool', pool)}"

    def shared_call(self, pool: str) -> str:
        """Name the filter by which the workers of a pool share its calls."""
        return f"$share/{pool}/{self.call(pool)}"

    def event(self, kind: str) -> str:
        return f"{self.prefix}/event/{kind if kind == '+' else check_word('event kind', kind)}"

    def reply(self, name: str) -> str:
        """Return a good response topic for an `invoke`; `name` is the caller's own."""
        return f"{self.prefix}/reply/{name if name == '+' else check_word('reply name', name)}"

    def registry(self, pool: str) -> str:
        return f"glassd/v1/{self.tenant}/registry/{check_word('pool', pool)}"

    def may_answer_to(self, topic: str) -> bool:
        """Tell whether a response topic is ours to write and has no other meaning."""
        rest = topic.removeprefix(f"{self.prefix}/")
        if rest in (topic, "") or len(topic) > 512:
            return False
        bad = any(c in "+#" or not c.isprintable() for c in rest)
        return not bad and rest.partition("/")[0] not in _MEANT


_MEANT: Final = frozenset(
    {"presence", "capabilities", "call", "result", "cancel", "invoke", "delivery", "event"}
)
