"""`glassd devcloud`: the reference cloud alone, until Ctrl-C; with `--tls` it shows the first
enrolment code, to paste or to scan.
"""

import errno
import tempfile
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from edge.commands.shared.announce import announcer
from edge.commands.shared.console import CliError, Screen, os_problem
from edge.commands.shared.extras import load, missing
from edge.commands.shared.run_loop import run_until_told


def run(args: Namespace, screen: Screen) -> int:
    cloud = load("edge.devcloud.main", "devcloud")
    if args.worker:
        return _worker(args, screen, cloud)
    with tempfile.TemporaryDirectory(prefix="glassd-devcloud-") as temporary:
        try:
            return run_until_told(
                lambda: cloud.run_devcloud(
                    http=args.http,
                    broker=args.broker,
                    tenant=args.tenant,
                    pool=args.pool,
                    state_dir=Path(args.state or temporary),
                    announce=_announcer(screen),
                    tls=args.tls,
                    legacy=args.legacy,
                )
            )
        except ModuleNotFoundError as e:
            raise missing(e, "devcloud") from None
        except ValueError as e:
            raise CliError("USAGE", str(e), "see: glassd devcloud --help", exit_code=2) from None
        except OSError as e:
            raise _failed(e, args.http) from None


def _failed(error: OSError, http: str) -> CliError:
    if error.errno == errno.EADDRINUSE:
        return CliError(
            "DEVCLOUD_FAILED",
            f"{http}: another program listens there already",
            "choose another, or any that is free: --http 127.0.0.1:0",
        )
    if error.filename is not None:
        return CliError("DEVCLOUD_FAILED", os_problem(error), "name another folder: --state DIR")
    return CliError("DEVCLOUD_FAILED", str(error), "see: glassd devcloud --help")


def _worker(args: Namespace, screen: Screen, cloud: Any) -> int:
    if args.state is None or args.tls:
        problem = (
            "--worker shares the --state of a cloud"
            if args.state is None
            else "--worker and --tls: a cloud with TLS is one process"
        )
        raise CliError("USAGE", problem, "see: glassd devcloud --help", exit_code=2)
    try:
        return run_until_told(
            lambda: load("edge.devcloud.worker.worker", "devcloud").run_worker(
                broker=args.broker,
                tenant=args.tenant,
                pool=args.pool,
                state_dir=Path(args.state),
                apps=cloud.sample_apps(),
                announce=announcer(screen, "worker"),
            )
        )
    except ValueError as e:
        raise CliError("USAGE", str(e), "see: glassd devcloud --help", exit_code=2) from None
    except OSError as e:
        raise _failed(e, args.http) from None


def _announcer(screen: Screen) -> Callable[[Mapping[str, Any]], None]:
    """Return the function that announces the cloud; for people, its code is shown separately."""
    announce = announcer(screen, "devcloud")

    def announce_cloud(facts: Mapping[str, Any]) -> None:
        code = None if screen.as_json else facts.get("code")
        announce({key: value for key, value in facts.items() if key != "code" or code is None})
        if code is not None:
            _show(screen, str(code), str(facts["http"]), str(facts["ca_file"]))

    return announce_cloud


def _show(screen: Screen, code: str, url: str, ca_file: str) -> None:
    screen.line(
        "\nOne edge may enrol with this code, "
        "within half an hour (glassd up - and paste it, or scan it):\n"
    )
    screen.line(code + "\n")
    screen.line(load("edge.devcloud.enrolment.codes", "devcloud").qr(code))
    screen.line(
        f"\nAnother code: curl --cacert {ca_file} -X POST {url}/devcloud/codes --json '{{}}'"
    )
    screen.flush()
