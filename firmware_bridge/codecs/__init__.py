"""One codec file per glasses family, both roles, no I/O, no clock."""
