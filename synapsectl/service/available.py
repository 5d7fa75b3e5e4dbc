"""Which service manager this machine has."""

import shutil
import sys
from collections.abc import Mapping

from synapsectl.service.launchd import Launchd
from synapsectl.service.manager import NoServiceManager, ServiceManager
from synapsectl.service.systemd import Systemd


def this_machines(environ: Mapping[str, str]) -> ServiceManager:
    """Raises NoServiceManager, in words that help, if there is no service manager at all."""
    if sys.platform == "darwin" and shutil.which("launchctl"):
        return Launchd(environ)
    if shutil.which("systemctl"):
        return Systemd(environ)
    raise NoServiceManager(
        "there is no service manager here that knows services of a user (neither systemctl nor launchctl): start, run "
        "and send start a daemon when they need one; to keep one running, put 'synapsed run' under what this machine "
        "starts things with"
    )
