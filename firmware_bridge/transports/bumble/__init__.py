"""Our own Bluetooth host stack, on bumble."""
