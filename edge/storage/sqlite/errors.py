"""What the store raises. Whatever it is, nothing of the work that failed happened."""


class StorageUnavailable(Exception):
    """The disk takes nothing now: full, read-only or failing. Nothing was done; try again later."""


class StoreError(Exception):
    """The store could not do it; nothing of it happened."""


class StoreFull(StoreError):
    """No room for new durable work; reading, finishing and deleting still work."""


class DiskUnavailable(StoreFull, StorageUnavailable):
    """The disk under the database takes nothing new: it is full, read-only or failing."""


class StoreDamaged(StoreError, StorageUnavailable):
    """The database file is damaged; the next start puts it aside and saves what can be read."""


class StoreMisplaced(StoreError):
    """Something that is no file has the database's name; a person must move it away."""


class StoreClosed(StoreError):
    """The store is closed."""


class UplinkBusy(Exception):
    """The outbox is full: nothing more is accepted until some of it is delivered."""
