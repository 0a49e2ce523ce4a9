"""What the everyday tools promise beyond the rows of the seed features."""

from typing import Final

from tests.promises.words import Promise

PROMISES: Final[dict[str, Promise]] = {
    "I15-configured": Promise(
        "A tool that needs settings is not offered before they are set, "
        "and says which are missing.",
        "issue 15",
    ),
    "I15-workers": Promise(
        "The network part of a tool runs in a child process with a deadline; what may have been "
        "done when it was ended is reported.",
        "issue 15",
    ),
}

DECLINED: Final[dict[str, str]] = {}
