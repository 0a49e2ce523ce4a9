"""What each user keeps within each package. Made, and imported, when the first tool asks."""

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from tools_cache.api.handed import Database, Files

if TYPE_CHECKING:
    from edge.storage.tools.encryption import Keyring
    from edge.storage.tools.users import Users


class Private(Struct, frozen=True):
    """One user's, within one package."""

    db: Database
    files: Files


class PrivateStores:
    """`folder` has a folder per user; `key` holds the key of encrypted columns, or `credential`."""

    def __init__(self, folder: Path, *, key: Path, credential: Path | None = None) -> None:
        self._folder = folder
        self._key = key
        self._credential = credential
        self._made: tuple[Users, Keyring] | None = None

    def of(self, user: str, package: str) -> Private:
        """Return what is this user's; nothing is opened yet."""
        from edge.storage.tools.user_files import UserFiles  # noqa: PLC0415 - see above
        from edge.storage.tools.user_tables import UserTables  # noqa: PLC0415
        from edge.storage.tools.users import Owner  # noqa: PLC0415

        (users, keyring), owner = self._stores(), Owner(user, package)
        return Private(UserTables(users, keyring, owner), UserFiles(users, owner))

    def has_tables(self, user: str, package: str) -> bool:
        """Return whether this user keeps tables there; to ask makes no folder and opens nothing."""
        from edge.storage.tools.users import Owner  # noqa: PLC0415 - see above

        return (self._stores()[0].folder(Owner(user, package)) / "data.db").exists()

    def keyring(self) -> "Keyring":
        """Return the key of encrypted columns, for other encrypted stores of this machine."""
        return self._stores()[1]

    async def close(self) -> None:
        if self._made is not None:
            await self._made[0].close()

    def _stores(self) -> "tuple[Users, Keyring]":
        from edge.storage.tools.encryption import Keyring  # noqa: PLC0415 - see above
        from edge.storage.tools.users import Users  # noqa: PLC0415

        if self._made is None:
            self._made = Users(self._folder), Keyring(self._key, credential=self._credential)
        return self._made
