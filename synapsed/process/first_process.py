"""The first process of a container (pid 1), which the kernel gives every process whose parent has ended.

Keepers (processes that hold agents' terminals) are among these after their daemon has ended, and would stay as zombies.
So the first process passes signals on to the daemon, its child, reaps all ended processes, and ends with the daemon's
status. (With `docker run --init` another program is the first process.)
"""

import os
import signal

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_FROM_THE_KERNEL = 0x80
"""`SI_KERNEL` of <siginfo.h>: the signal came from a key at the terminal, and the whole group got it."""


def leave_to_a_child() -> None:
    """Forks if this is the first process, and returns in the child only; else returns at once."""
    if os.getpid() != 1:
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (*SIGNALS, signal.SIGCHLD))  # from here on no signal is lost
    child = os.fork()
    if child:
        _attend(child)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    if os.environ.get("LISTEN_PID") == "1":
        os.environ["LISTEN_PID"] = str(os.getpid())


def _attend(child: int) -> None:
    while True:
        told = signal.sigwaitinfo((*SIGNALS, signal.SIGCHLD))
        if told.si_signo != signal.SIGCHLD:
            if told.si_code != _FROM_THE_KERNEL:
                os.kill(child, told.si_signo)
            continue
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                code = os.waitstatus_to_exitcode(ended[1])
                os._exit(code if code >= 0 else 128 - code)
