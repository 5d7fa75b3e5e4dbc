"""Side channels, which report on a program besides its screen: hooks, transcripts, programs' own servers. Adapters of
parts use the names listed here."""

from synapsed.channels.adapters import Adapter
from synapsed.channels.channel_questions import about_of, options_of, question_of, reply_of, texts_at, tool_of
from synapsed.channels.launch_additions import LaunchContext
from synapsed.channels.tool_reports import tool_fact, tool_line
from synapsed.channels.transcripts import at_path, clean, holds, parse_record, text_at, used
from synapsed.profiles.channel_spec import Channel, DecisionSpec, ErrorCode, FactKind, Line, Transcript

__all__ = [
    "Adapter",
    "Channel",
    "DecisionSpec",
    "ErrorCode",
    "FactKind",
    "LaunchContext",
    "Line",
    "Transcript",
    "about_of",
    "at_path",
    "clean",
    "holds",
    "options_of",
    "parse_record",
    "question_of",
    "reply_of",
    "text_at",
    "texts_at",
    "tool_fact",
    "tool_line",
    "tool_of",
    "used",
]
