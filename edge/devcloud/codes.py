"""An enrolment code for a person: as a QR to scan from the terminal. Refuses to know what is in
it.
"""

import io


def qr(code: str) -> str:
    """Draw it in half blocks, a quiet border around; at most 30 lines for the codes of usual
    names.
    """
    import segno  # noqa: PLC0415 - the devcloud's terminal only

    out = io.StringIO()
    # Level L: a screen has no stains, and every level above costs four lines.
    segno.make(code, error="l", boost_error=False, micro=False).terminal(
        out, border=2, compact=True
    )
    return out.getvalue().rstrip("\n")
