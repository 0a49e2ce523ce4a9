"""Setting text of any script in rows of pixels: fonts, order, shapes. Runs in a child process."""
