"""A real sshd of a test's own, and what a real ssh needs to log in there."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

__all__ = ["Sshd", "needs_ssh", "synapsectl_in"]

_SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
needs_ssh = pytest.mark.skipif(not (_SSHD and shutil.which("ssh")), reason="NOT TRIED: there is no sshd, or no ssh")

_PATIENCE_S = 180.0


@dataclass
class Sshd:
    """The login of another machine: only for the key of `folder`; `within` is what runs it there."""

    folder: Path
    address: str
    environ: str
    port: int = 22
    within: Sequence[str] = ()
    process: subprocess.Popen[bytes] | None = None

    def prepare(self) -> None:
        for name in ("host", "user"):
            key = self.folder / name
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, timeout=60)
        (self.folder / "authorized_keys").write_bytes((self.folder / "user.pub").read_bytes())
        (self.folder / "known_hosts").touch()
        (self.folder / "sshd_config").write_text(
            f"ListenAddress {self.address}\nPort {self.port}\nHostKey {self.folder}/host\n"
            f"AuthorizedKeysFile {self.folder}/authorized_keys\n"
            "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n"
            f"PidFile none\nSetEnv {self.environ}\n"
        )
        (self.folder / "ssh_config").write_text(
            f"Host *\n  IdentityFile {self.folder}/user\n  IdentitiesOnly yes\n  StrictHostKeyChecking yes\n"
            f"  UserKnownHostsFile {self.folder}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
        )

    @property
    def plain(self) -> list[str]:
        """The command, as a person has it."""
        return ["ssh", "-F", str(self.folder / "ssh_config")]

    @property
    def ssh(self) -> list[str]:
        """The command. A dead connection is noticed within seconds."""
        return [*self.plain, "-o", "ServerAliveInterval=1", "-o", "ConnectTimeout=2"]

    def trust(self) -> None:
        kind, key, *_ = (self.folder / "host.pub").read_text().split()
        known = self.address if self.port == 22 else f"[{self.address}]:{self.port}"
        (self.folder / "known_hosts").write_text(f"{known} {kind} {key}\n")

    def start(self) -> None:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        with (self.folder / "sshd.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self.within, str(_SSHD), "-D", "-e", "-f", f"{self.folder}/sshd_config"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def stop(self) -> None:
        """As when the machine is off: it and its sessions are gone."""
        if self.process is None:
            return
        for pid in [*_children(self.process.pid), self.process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(_PATIENCE_S)
        self.process = None


def synapsectl_in(folder: Path) -> Path:
    """A `synapsectl` for the other side of an ssh: the one under test."""
    script = folder / "synapsectl"
    root = Path(__file__).parents[2]
    script.write_text(f'#!/bin/sh\nPYTHONPATH={root} exec {sys.executable} -m synapsectl "$@"\n')
    script.chmod(0o700)
    return script


def _children(pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == pid:
                child = int(path.parent.name)
                found += [*_children(child), child]
    return found
