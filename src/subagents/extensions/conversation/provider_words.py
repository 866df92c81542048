"""What a provider itself says, in an error that a program hands on."""

import msgspec

from subagents.extensions.conversation.json_fields import as_text, text_at, value_at


def provider_message(text: str) -> str:
    """An error's message; the provider's own words where it is the body of its HTTP answer."""
    if not text.startswith("{"):
        return text
    try:
        body = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
    error = value_at(body, "error")
    return text_at(error, "message") or as_text(error) or text_at(body, "message") or text
