"""Entry point of the command `glassd`. Ctrl-C while modules are still being imported ends it
without a traceback: also the module `signal` is left for later, because it imports half a dozen.
"""

import _signal  # type: ignore[import-not-found]  # built in
import gc


def main() -> int:
    """Run the command line."""
    try:
        return _run()
    finally:
        # Python ends with one more search for garbage in all that was loaded: an eighth of the
        # work of a short verb, a quarter of that of `mcp`. What is frozen is not searched.
        gc.freeze()


def _run() -> int:
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        # `edge.cli.main` puts it back, when it can say what was interrupted
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    from edge import cli  # noqa: PLC0415 - what may be interrupted

    return cli.main()


if __name__ == "__main__":
    raise SystemExit(main())
