"""Finds the service manager of this machine."""

import shutil
import sys
from collections.abc import Mapping

from synapsectl.service.launchd import Launchd
from synapsectl.service.manager import NoServiceManager, ServiceManager
from synapsectl.service.systemd import Systemd


def this_machines(environ: Mapping[str, str]) -> ServiceManager:
    """Returns the service manager. Raises NoServiceManager, with advice, on a machine without one."""
    if sys.platform == "darwin" and shutil.which("launchctl"):
        return Launchd(environ)
    if shutil.which("systemctl"):
        return Systemd(environ)
    raise NoServiceManager(
        "there is no service manager here that knows services of a user (neither systemctl nor launchctl): the verbs "
        "'start', 'run' and 'send' start a daemon when they need one; to keep one running, have this machine start "
        "'synapsed run'"
    )
