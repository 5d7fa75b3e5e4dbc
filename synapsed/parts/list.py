"""The parts that there are, in their order."""

NAMES = (
    "moods",
    "pictures",
    "answer_blocks",
    "work_events",
    "approvals",
    "person_settings",
    "history",
    "telemetry",
    "schedules",
    "rules",
    "web",
    "attention",
    "a2a",
    "elsewhere",
    "mentions",
    "app_server",
    "session_server",
    "editors",
    "worktrees",
    "profile_tools",
)
