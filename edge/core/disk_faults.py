"""Errors of a disk that cannot be written: full, over a quota, read-only or failing."""

import errno
from typing import Final, TypeGuard

DISK_FAULTS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})


def is_disk_fault(error: BaseException | None) -> TypeGuard[OSError]:
    """Return whether this is such an error; trying again later may succeed."""
    return isinstance(error, OSError) and error.errno in DISK_FAULTS
