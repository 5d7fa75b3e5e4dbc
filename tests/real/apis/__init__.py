"""The model endpoint's dialects: what a request says (`Call`) and how an answer is written, for each API.

Pure: bytes and dictionaries in, bytes and dictionaries out; the server in `model` does the waiting and sending.
"""

from tests.real.apis.anthropic import Anthropic
from tests.real.apis.base import Api, Call, Encoder, ToolResult
from tests.real.apis.gemini import Gemini
from tests.real.apis.openai import Chat, Responses

__all__ = ["APIS", "Api", "Call", "Encoder", "ToolResult"]

APIS: tuple[Api, ...] = (Anthropic(), Responses(), Chat(), Gemini())
