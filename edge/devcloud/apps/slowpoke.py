"""Slowpoke: takes a given time, then answers; stops at once when cancelled."""

import asyncio
import time
from typing import Any, Final

from edge.devcloud.appserver import AppServer
from edge.devcloud.sdk import CallContext, create_tool, params, reply

MAX_SECONDS: Final = 120.0
_VOWELS: Final = frozenset("aeiouyáéíóúàèìòùäëïöüâêîôû")


def ponder(text: str) -> dict[str, Any]:
    """Return simple facts about a phrase."""
    letters = [c for c in text.lower() if c.isalpha()]
    return {
        "reversed": " ".join(reversed(text.split())),
        "vowels": sum(c in _VOWELS for c in letters),
        "letters": len(letters),
        "palindrome": bool(letters) and letters == letters[::-1],
    }


async def _ponder_tool(args: dict[str, Any], _: CallContext) -> Any:
    started = time.monotonic()
    await asyncio.sleep(args["seconds"])
    found = ponder(args["text"])
    took = round(time.monotonic() - started, 2)
    kind = "a palindrome" if found["palindrome"] else "no palindrome"
    facts = f"{found['letters']} letters, {found['vowels']} vowels, {kind} ({took} s)"
    return reply({**found, "tookS": took}, show=f"{found['reversed']}\n{facts}")


_SECONDS: Final = {"type": "number", "minimum": 0, "maximum": MAX_SECONDS}


app = AppServer("com.example.slowpoke", name="Slowpoke")
app.register_tool(
    create_tool(
        "ponder",
        "Thinks about a phrase for a given time, then says what it found.",
        params(
            ["seconds", "text"],
            text={"type": "string", "maxLength": 2000, "description": "The phrase"},
            seconds={**_SECONDS, "description": "How long to think"},
        ),
        _ponder_tool,
        activation_phrases=["ponder"],
        side_effects="none",
        idempotent=True,
    )
)

if __name__ == "__main__":
    app.run()
