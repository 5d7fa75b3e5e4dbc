"""Makes sinks from the configuration."""

import asyncio

from synapsed.errors import InvalidRequest
from synapsed.kernel import Kernel
from synapsed.parts.attention.notify import DesktopSink, MailSink, NtfySink, Sink, WebhookSink, WebSink
from synapsed.parts.attention.sinks.base import SinkPort
from synapsed.parts.attention.sinks.posts import HttpCalls, NtfyPort, WebhookPort


class SinkMaker:
    """Makes sinks. Each sink that is reached by HTTP has a poster of its own."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    async def __call__(self, sink: Sink) -> SinkPort:
        """Returns the sink. Raises InvalidRequest that says which setting is wrong."""
        match sink:
            case DesktopSink():
                from synapsed.parts.attention.sinks.desktop import desktop

                return desktop(self._kernel.environ)
            case WebhookSink():
                key = await asyncio.to_thread(
                    self._kernel.outgoing.secrets.signing_key, file=sink.secret_file, env=sink.secret_env
                )
                return WebhookPort(sink.url, key, await self._calls(sink.url))
            case NtfySink():
                topic = sink.topic or (await self._secret(sink.topic_file))[1]
                given = sink.token_file is not None or sink.token_env is not None
                token = (await self._secret(sink.token_file, sink.token_env))[1] if given else None
                return NtfyPort(sink.url, topic, token, await self._calls(sink.url))
            case WebSink():
                raise InvalidRequest(
                    "[notify.sinks] of the type 'web' only have rules for browsers, each of which is notified by itself"
                )
            case MailSink():
                from synapsed.parts.attention.sinks.mail import PORTS, MailPort, MailServer

                given = sink.user is not None
                password = (await self._secret(sink.password_file, sink.password_env))[1] if given else ""
                server = MailServer(
                    host=sink.host,
                    port=sink.port or PORTS[sink.security],
                    security=sink.security,
                    user=sink.user,
                    password=password,
                )
                return MailPort(server, sender=sink.sender, to=sink.to)

    async def _secret(self, file: str | None, env: str | None = None) -> tuple[str, str]:
        return await asyncio.to_thread(self._kernel.outgoing.secrets.read, file=file, env=env)

    async def _calls(self, url: str) -> HttpCalls:
        poster = self._kernel.outgoing.poster()
        try:
            await poster.check(url)
        except InvalidRequest:
            await poster.close()
            raise
        return HttpCalls(poster, self._kernel)
