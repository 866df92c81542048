"""A provider's refusal is told in its own words."""

import pytest

from subagents.extensions.conversation.provider_words import provider_message


@pytest.mark.requirement("runtimes:provider-words")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("plain", "plain"),
        ('{"error":{"message":"no key"}}', "no key"),
        ('{"error":"no key"}', "no key"),
        ('{"message":"no key"}', "no key"),
        ('{"other":1}', '{"other":1}'),
        ("{broken", "{broken"),
    ],
)
def test_a_providers_own_words_are_taken_out_of_its_answer(text: str, message: str) -> None:
    assert provider_message(text) == message
