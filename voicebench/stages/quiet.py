"""Import pipecat without its banner, its debug lines and the deprecation warnings of its own."""

from __future__ import annotations

import logging
import warnings


def hush_pipecat() -> None:
    """Silence what pipecat and its libraries print. Call it before the first import of pipecat.

    What goes wrong in a pipeline reaches voicebench as error frames, so nothing is lost.
    """
    from loguru import logger

    logger.remove()
    logger.disable("pipecat")
    warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"pipecat\..*")
    warnings.filterwarnings(
        "ignore", r".* is deprecated since .* and will be removed in 2\.0\.0", DeprecationWarning
    )
    for name in ("faster_whisper", "httpx", "httpx2", "openai", "anthropic", "piper"):
        logging.getLogger(name).setLevel(logging.ERROR)
