"""Actions on events (`[[rule]]`), and `[webhooks.NAME]`, the receivers elsewhere that rules notify.

`rule` matches events; `rule_runner` does the actions, `webhooks` notifies the receivers. `running` opens the part.
"""

import difflib
from typing import Annotated, Any

from pydantic import Field

from synapsed.config.config import ConfigKey
from synapsed.kernel import Face, WantedBy
from synapsed.parts.rules.rule import RULES_MAX, RuleConfig, WebhookConfig


def _fit_together(config: Any) -> str | None:
    """Returns an error if two rules have the same name, or one notifies a receiver that does not exist."""
    names: set[str] = set()
    for number, rule in enumerate(config.rule):
        if rule.name in names:
            return f"rule.{number}: name: another [[rule]] is called {rule.name!r}"
        if rule.do.webhook is not None and rule.do.webhook not in config.webhooks:
            near = difflib.get_close_matches(rule.do.webhook, config.webhooks, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"write [webhooks.{rule.do.webhook}]"
            return f"rule.{number}: do.webhook: there is no webhook {rule.do.webhook!r}; {hint}"
        names.add(rule.name)
    return None


FACE = Face(
    name="rules",
    opens="synapsed.parts.rules.running",
    wanted=WantedBy(
        config=lambda config: bool(config.rule or config.webhooks),
        rows=("SELECT 1 FROM followers WHERE name = 'rules'",),
    ),
    sections={
        "rule": ConfigKey(
            Annotated[list[RuleConfig], Field(max_length=RULES_MAX)],
            default=[],
            changes=lambda _before, _after: ["[[rule]] changed"],
        ),
        "webhooks": ConfigKey(Annotated[dict[str, WebhookConfig], Field(max_length=RULES_MAX)], default={}),
    },
    check=_fit_together,
)
"""Description of this part for the daemon, which reads it without loading the part's code."""
