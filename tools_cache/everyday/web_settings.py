"""Settings that the `web` tools share. Imported by their `config.py` only."""

from typing import Annotated

from pydantic import Field

MAX_HOSTS = 50
Host = Annotated[str, Field(pattern=r"^([^\s/@:\[\]]{1,253}|[0-9A-Fa-f:.]{2,45})$")]
"""The name or address of a host, without a port."""
Hosts = Annotated[
    list[Host],
    Field(max_length=MAX_HOSTS, description="Hosts that may be in a private network."),
]
