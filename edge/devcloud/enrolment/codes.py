"""Draws an enrolment code as a QR code in the terminal."""

import io


def qr(code: str) -> str:
    """Return the code in half blocks with a quiet border; at most 30 lines for codes with names of
    usual length.
    """
    import segno  # noqa: PLC0415 - the devcloud's terminal only

    out = io.StringIO()
    # Level L: a screen needs little error correction, and each higher level costs four lines.
    segno.make(code, error="l", boost_error=False, micro=False).terminal(
        out, border=2, compact=True
    )
    return out.getvalue().rstrip("\n")
