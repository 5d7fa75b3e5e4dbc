"""Mail as a sink, by the standard library's SMTP in a thread of its own: a server that does not answer delays nothing
else."""

import asyncio
import smtplib
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import formatdate
from typing import Any, Final, Literal

import structlog

from synapsed.parts.attention.notification_policy import Notice
from synapsed.parts.attention.sinks.base import Buttons, Untold

PATIENCE_S: Final = 15.0
"""Seconds for each step of the dialogue."""

PORTS: Final = {"starttls": 587, "tls": 465, "none": 25}

log = structlog.stdlib.get_logger("synapsed.notify")


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    host: str
    port: int
    security: Literal["starttls", "tls", "none"]
    user: str | None = None
    password: str = field(default="", repr=False)
    trust: ssl.SSLContext | None = None
    """Trusted certificates; None: those that this machine trusts."""


class MailPort:
    """Sink of mail, which cannot be taken back. A repeated notice has the same `Message-ID`."""

    once = False
    withdraws = False
    sure = False

    def __init__(self, server: MailServer, *, sender: str, to: list[str]) -> None:
        self._server = server
        self._sender = sender
        self._to = to
        self._busy = False
        """True while a thread sends; the thread may outlive the caller that waited for it."""

    async def tell(self, notice: Notice, buttons: Buttons | None) -> str:
        if self._busy:
            raise Untold("the mail server has not finished the mail before this one")
        try:
            message = self._message(notice)
        except UnicodeError:
            raise Untold("the notice has a character that no mail can have", refused=True) from None
        self._busy = True
        try:
            await _in_thread(lambda: self._send(message))
        except RuntimeError:  # no thread was started
            self._busy = False
            raise Untold("this machine has no thread left to send a mail") from None
        return ""

    def _message(self, notice: Notice) -> EmailMessage:
        message = EmailMessage()
        message["From"] = self._sender
        message["To"] = ", ".join(self._to)
        message["Subject"] = _line(notice.title)
        message["Date"] = formatdate()
        message["Message-ID"] = f"<{notice.id}@synapsed.invalid>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(notice.body or notice.title)
        bytes(message)  # what cannot be encoded shows here
        return message

    async def withdraw(self, item_id: str, ref: str, outcome: Mapping[str, Any]) -> None:
        pass

    async def close(self) -> None:
        pass

    def _send(self, message: EmailMessage) -> None:
        """Sends a mail. A mail that the server took for one recipient is sent: to repeat it would send it twice, so the
        other recipients are only logged. Raises Untold."""
        try:
            smtp = self._connected()
            try:
                if self._server.user is not None:
                    smtp.login(self._server.user, self._server.password)
                if refused := smtp.send_message(message, self._sender, self._to):
                    codes = sorted({code for code, _ in refused.values()})
                    log.warning("the mail server refused some recipients", refused=len(refused), codes=codes)
                with suppress(smtplib.SMTPException, OSError):  # the server has the mail, whatever it says now
                    smtp.quit()
            finally:
                smtp.close()
        except smtplib.SMTPAuthenticationError:
            raise Untold("the mail server did not take user and password") from None
        except smtplib.SMTPRecipientsRefused:
            raise Untold("the mail server refused every recipient") from None
        except smtplib.SMTPResponseException as error:
            raise Untold(f"the mail server answered {error.smtp_code}") from None
        except smtplib.SMTPException as error:
            raise Untold(f"the mail server cannot be used ({type(error).__name__})") from None
        except ssl.SSLError:
            raise Untold("the mail server's certificate cannot be verified, or TLS failed") from None
        except UnicodeError:
            raise Untold(
                "the mail server's name, the user or the password has a character that it cannot have"
            ) from None
        except OSError as error:
            raise Untold(f"the mail server cannot be reached: {error.strerror or error}") from None
        finally:
            self._busy = False

    def _connected(self) -> smtplib.SMTP:
        server, trust = self._server, self._server.trust or ssl.create_default_context()
        if server.security == "tls":
            return smtplib.SMTP_SSL(server.host, server.port, timeout=PATIENCE_S, context=trust)
        smtp = smtplib.SMTP(server.host, server.port, timeout=PATIENCE_S)
        if server.security == "starttls":
            try:
                smtp.starttls(context=trust)
            except BaseException:
                smtp.close()
                raise
        return smtp


async def _in_thread(work: Callable[[], None]) -> None:
    """Runs `work` in a thread that does not delay the end of the daemon."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def told(error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        failure: BaseException | None = None
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - it is raised where it is awaited
            failure = error
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(told, failure)

    threading.Thread(target=run, name="mail", daemon=True).start()
    await done


def _line(text: str) -> str:
    return " ".join(text.split())
