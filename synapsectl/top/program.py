"""`top` from its beginning to its end: the app, again after each attach, and what is under way when a person leaves."""

from synapsectl.commands.inbox import attach_to
from synapsectl.context import CommandContext
from synapsectl.errors import DONE, CtlError
from synapsectl.top.app import TopApp
from synapsectl.top.desk import Desk
from synapsectl.top.watching import Watching


def show(ctx: CommandContext, *, hold: float, first: str | None) -> int:
    """The exit code. Raises NoDaemon where no daemon runs to begin with."""
    ctx.client.get("/inbox")
    desk, watching = Desk(hold=hold, first=first), Watching(ctx)
    watching.start()
    try:
        return _until_left(ctx, desk, watching)
    finally:
        watching.stop()


def _until_left(ctx: CommandContext, desk: Desk, watching: Watching) -> int:
    while True:
        app = TopApp(desk, watching, home=ctx.environ.get("HOME", ""))
        agent = app.run()
        if agent is None:
            break
        try:
            attach_to(ctx, agent, held=b"\r")
        except CtlError as error:
            watching.tell(str(error))
    for item, chosen in desk.inbox.held:
        ctx.out.note(f"{item['agent']} was not answered: {chosen.label}")
    if not watching.finish():
        ctx.out.note("an answer is still being typed: 'synapsectl inbox' shows what became of it")
    watching.take(desk, 0.0)
    if desk.note:
        ctx.out.note(desk.note)
    return app.return_code or DONE
