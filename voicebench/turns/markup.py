"""Signs in a reply that are meant for eyes: what a voice makes of them is its own affair, so turns say so."""

from __future__ import annotations

import re

_FOR_EYES = re.compile(
    r"[*`]|(?:^|\s)#+\s|\]\(|~~|__|https?://"  # Markdown's marks and addresses
    r"|[\u2600-\u27bf\ufe0f\U0001f000-\U0001faff]"  # emoji and other pictures
)


def holds_markup(text: str) -> bool:
    """Does the text hold Markdown, code marks, an address or an emoji? No judgement of how it is spoken."""
    return _FOR_EYES.search(text) is not None
