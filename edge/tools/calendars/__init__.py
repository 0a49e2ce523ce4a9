"""Calendars: files on this machine, or a CalDAV server; read and written by a child process."""
