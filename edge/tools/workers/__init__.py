"""The network parts of shipped tools: each runs in a child process of its own, one request a child.

A module here has `answer(request) -> dict`. It is never imported by the daemon, except for
`mail_account` and `mail_connection`, by which the daemon waits for new mail.
"""
