"""Entry point of the command `glassd`. Ctrl-C while modules are still being imported ends it
without a traceback.
"""

import gc
import signal


def main() -> int:
    """Run the command line."""
    try:
        return _run()
    finally:
        # Python ends with one more search for garbage in all that was loaded: an eighth of the
        # work of a short verb, a quarter of that of `mcp`. What is frozen is not searched.
        gc.freeze()


def _run() -> int:
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(
            signal.SIGINT, signal.SIG_DFL
        )  # `edge.cli.main` puts it back, when it can say what was interrupted
    from edge import cli  # noqa: PLC0415 - what may be interrupted

    return cli.main()


if __name__ == "__main__":
    raise SystemExit(main())
