"""The error that a person or a program is shown: what is wrong, and what to do next."""

from typing import Final

EXIT_CODES: Final = {
    "USAGE": 2,
    "WRONG_USAGE": 2,
    "INVALID_REQUEST": 2,
    "BAD_SETTINGS": 2,
    "TOKEN": 2,
    "NOT_RUNNING": 3,
    "NOT_FOUND": 4,
    "TOOL_NOT_FOUND": 4,
    "NO_GLASSES": 4,
    "TIMEOUT": 5,
}
"""Error code → exit code of the command line; any other code is 1."""


class UserError(Exception):
    """What was asked cannot be done. `code` is for programs, `message` says what is wrong, `fix`
    what to do next. `exit_code` overrules the one of `EXIT_CODES`.

    `status` is that of the daemon's HTTP answer, 0 if there was none. `may_have_run`: the daemon
    may have received the request, and may have carried it out.
    """

    def __init__(
        self,
        code: str,
        message: str,
        fix: str = "",
        *,
        exit_code: int = 0,
        status: int = 0,
        may_have_run: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fix = fix
        self.exit_code = exit_code or EXIT_CODES.get(code, 1)
        self.status = status
        self.may_have_run = may_have_run
