"""`glassd devcloud`: the reference cloud alone, until Ctrl-C."""

import tempfile
from argparse import Namespace
from pathlib import Path

from edge.verbs.announce import announcer
from edge.verbs.extras import load, missing
from edge.verbs.loop import run_until_told
from edge.verbs.screen import CliError, Screen


def run(args: Namespace, screen: Screen) -> int:
    cloud = load("edge.devcloud.main", "devcloud")
    with tempfile.TemporaryDirectory(prefix="glassd-devcloud-") as temporary:
        try:
            return run_until_told(lambda: cloud.run_devcloud(
                http=args.http, broker=args.broker, tenant=args.tenant, pool=args.pool,
                state_dir=Path(args.state or temporary), announce=announcer(screen, "devcloud"),
            ))  # fmt: skip
        except ModuleNotFoundError as e:
            raise missing(e, "devcloud") from None
        except ValueError as e:
            raise CliError("USAGE", str(e), "see: glassd devcloud --help", exit_code=2) from None
        except OSError as e:
            raise CliError("DEVCLOUD_FAILED", str(e), "see: glassd devcloud --help") from None
