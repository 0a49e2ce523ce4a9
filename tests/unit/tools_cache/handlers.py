"""Handlers in every form, good and bad: name → text; of a bad one also what the build says, and
what loading it says.
"""

FUNCTION = "async def execute(args, ctx):\n    return {'data': 'function'}\n"
HEAD = """
import logging
from abc import abstractmethod
from tools_cache.api.base import Tool
from tools_cache.api.handed import Audio, Cloud, Clock, Config, Database, Display, Files, KV
from tools_cache.api.tool import ToolCall, ToolContext
"""
PLAIN = (
    HEAD
    + """
class Do(Tool):
    async def run(self, args):
        return {'data': 'class'}
"""
)
STORE = (
    HEAD
    + """
class Keep(Tool):
    def __init__(self, db: Database, words: logging.Logger) -> None:
        self.db, self.words = db, words

    async def run(self, args):
        self.words.warning('kept')
        return {'data': [type(self.db).__name__, self.words.name]}
"""
)
GOOD = {
    "function": FUNCTION,
    "class": PLAIN,
    "injected": STORE,
    "everything": PLAIN.replace(
        "    async def",
        "    def __init__(self, a: Display, b: Audio, c: Cloud, d: KV, e: Files, f: Clock, g: "
        "Config, *, h: ToolCall, i: ToolContext): pass\n    async def",
    ),
    "aliased": "import tools_cache.api.base as b\nfrom tools_cache import handed as h\n"
    + PLAIN.replace(HEAD, "")
    .replace("(Tool)", "(b.Tool)")
    .replace(
        "    async def", "    def __init__(self, db: h.Database, kv: 'h.KV'): pass\n    async def"
    ),
    "abstract above": PLAIN.replace(
        "class Do(Tool):",
        "class Half(Tool):\n    @abstractmethod\n    def word(self): "
        "...\n\nclass Do(Half):\n    def word(self): return 'x'\n",
    ),
    "inherits run": PLAIN.replace("class Do", "class Half").replace(
        "    async def run", "    @abstractmethod\n    def word(self): ...\n    async def run"
    )
    + "\nclass Do(Half):\n    def word(self): return 'x'\n",
    "imported beside": "from tests.unit.tools_cache.somebodys import Somebodys\n" + PLAIN,
}
"""All of them are built and run."""

BAD = {
    "nothing": ("x = 1\n", "doesn't export execute function", "doesn't export execute function"),
    "not async": (
        FUNCTION.replace("async ", ""),
        "doesn't export execute function",
        "doesn't export execute function",
    ),
    "no run": (
        PLAIN.replace("run(self", "walk(self"),
        "class Do has no run",
        "class Do has no run",
    ),
    "still abstract": (
        PLAIN.replace(
            "    async def", "    @abstractmethod\n    def word(self): ...\n    async def"
        ),
        "class Do has no word",
        "class Do has no word",
    ),
    "only imported": (
        "from tests.unit.tools_cache.somebodys import Somebodys\n",
        "doesn't export execute function",
        "doesn't export execute function",
    ),
    "two tools": (
        PLAIN + "\nclass Also(Do):\n    pass\n",
        "has 2 tools: Do, Also",
        "has 2 tools: Do, Also",
    ),
    "both forms": (
        PLAIN + FUNCTION,
        "has both execute and a Tool: Do",
        "has both execute and a Tool: Do",
    ),
    "run not async": (
        PLAIN.replace("async def run", "def run"),
        "Do.run must be async def run(self, args)",
        "Do.run must be async def run(self, args)",
    ),
    "unknown type": (
        STORE.replace("db: Database", "db: dict"),
        "Keep(db: dict) asks for what cannot be handed in",
        "Keep(db: dict) asks for what cannot be handed in",
    ),
    "no annotation": (
        STORE.replace("db: Database", "db"),
        "Keep(db: no annotation) asks",
        "Keep(db: no annotation) asks",
    ),
    "any keyword": (
        STORE.replace("db: Database", "**db: Database").replace(
            "**db: Database, words: logging.Logger", "words: logging.Logger, **db: Database"
        ),
        "asks for what cannot be handed in",
        "asks for what cannot be handed in",
    ),
    "positional only": (
        STORE.replace("Logger)", "Logger, /)"),
        "asks for what cannot be handed in",
        "asks for what cannot be handed in",
    ),
    "of the same name": (
        STORE.replace("class Keep", "class Database: pass\n\nclass Keep"),
        "asks for what cannot be handed in",
        "asks for what cannot be handed in",
    ),
    "a radio": (
        "from firmware_bridge.transport import Transport\n"
        + STORE.replace("db: Database", "db: Transport"),
        "Keep(db: firmware_bridge.transport.Transport) asks",
        "Keep(db: Transport) asks",
    ),
}
