"""Factoriser: prime factors of a number, computed in slices with progress, so that the event loop
stays free.
"""

import asyncio
import itertools
import math
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from edge.devcloud.appserver import AppServer
from edge.devcloud.sdk import CallContext, Progress, create_tool, params, reply

MAX_DIGITS: Final = 40
SLICE: Final = 20_000
"""Steps between two words of progress: about 20 ms, so a cancelled call stops soon."""
SMALL: Final = 1000
"""Trial division stops here; what is left is Pollard's rho's."""
_WITNESSES: Final = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)
"""Decides primality surely below 3.3e24; above, no counterexample is known."""


def is_prime(n: int) -> bool:
    """Miller-Rabin with fixed witnesses."""
    if n < 2:
        return False
    for p in _WITNESSES:
        if n % p == 0:
            return n == p
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    return all(_passes(n, a, odd, twos) for a in _WITNESSES)


def _passes(n: int, a: int, odd: int, twos: int) -> bool:
    x = pow(a, odd, n)
    if x in (1, n - 1):
        return True
    for _ in range(twos - 1):
        x = x * x % n
        if x == n - 1:
            return True
    return False


def _divide(n: int, offset: int) -> Iterator[int | None]:
    """Pollard's rho with polynomial x² + offset: yields None after each slice, at last a
    divisor (maybe n itself).
    """
    slow = fast = 2
    for step in itertools.count(1):
        slow = (slow * slow + offset) % n
        fast = (fast * fast + offset) % n
        fast = (fast * fast + offset) % n
        found = math.gcd(slow - fast, n)
        if found > 1:
            yield found
            return
        if step % SLICE == 0:
            yield None


def factors(n: int) -> Iterator[int | str]:
    """Yield every prime factor as it is found, and progress texts between them."""
    for p in range(2, SMALL):
        while n % p == 0:
            yield p
            n //= p
    pending, offset, slices = ([n] if n > 1 else []), 1, 0
    while pending:
        rest = pending.pop()
        if is_prime(rest):
            yield rest
            continue
        for found in _divide(rest, offset):
            if found is None:
                slices += 1
                yield f"looking into {rest} ({slices * SLICE} steps)"
            elif found == rest:
                pending.append(rest)
                offset += 1  # this polynomial ran in a circle; the next one will not
            else:
                pending += [found, rest // found]


def written(n: int, found: list[int]) -> str:
    """Return it in mathematical notation: `360 = 2^3 × 3^2 × 5`."""
    parts = [str(p) if k == 1 else f"{p}^{k}" for p, k in sorted(Counter(found).items())]
    return f"{n} = {' × '.join(parts) or '1'}" if len(found) != 1 else f"{n} is prime"


async def _factorise_tool(args: dict[str, Any], _: CallContext) -> AsyncIterator[Any]:
    text = str(args["number"])
    if not text.isascii() or not text.isdigit() or len(text) > MAX_DIGITS or int(text) < 1:
        raise ValueError(f"number: must be a whole number from 1 to {MAX_DIGITS} digits")
    n, found = int(text), list[int]()
    yield Progress(f"factorising a number of {len(text)} digits")
    for word in factors(n):
        if isinstance(word, int):
            found.append(word)
        yield Progress(f"found {word}" if isinstance(word, int) else word)
        await asyncio.sleep(0)
    shown = written(n, found)
    data = {"number": text, "factors": [str(p) for p in sorted(found)], "text": shown}
    yield reply(data, show=shown)


app = AppServer("com.example.prime", name="Factoriser")
app.register_tool(
    create_tool(
        "factorise",
        "Finds the prime factors of a whole number, telling how far it is.",
        params(
            ["number"],
            number={"type": ["integer", "string"], "description": f"At most {MAX_DIGITS} digits"},
        ),
        _factorise_tool,
        activation_phrases=["factorise", "factorize"],
        side_effects="none",
        idempotent=True,
    )
)

if __name__ == "__main__":
    app.run()
