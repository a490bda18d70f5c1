"""A conversation in the browser: the page is served, the conversation held, the report handed over."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from voicebench.errors import VoicebenchError
from voicebench.live.conversation import LiveOptions, converse
from voicebench.live.web.card import GONE, WebCard
from voicebench.live.web.messages import Flushed, PlayedSamples, Stamp, Wish
from voicebench.live.web.page import Page
from voicebench.live.web.screen import WebScreen
from voicebench.live.web.server import WebOptions, WebServer
from voicebench.models.store import Progress
from voicebench.runner import RunPlan
from voicebench.turns.run_folder import RunFolder

FILES = {"report.html": "text/html", "report.json": "application/json"}
HAND_OVER_S = 5.0


class WebTalk:
    """A page, its sound, and a conversation over them. `screen` has the records so far."""

    def __init__(self, plan: RunPlan, options: LiveOptions, web: WebOptions) -> None:
        self.page = Page()
        self.card = WebCard(self.page, echo=options.echo)
        self.server = WebServer(web, self.page)
        kinds = {mode.id: mode.kind for mode in plan.modes}
        self.screen = WebScreen(
            plan.config.budget_ms, self.card, kinds, options.anchor.value, options.keep_audio
        )
        self._plan, self._options = plan, options
        self.page.on_told = self._told

    async def hold(
        self,
        served: Callable[[str], None],
        finish: Callable[[RunFolder], None],
        progress: Progress | None = None,
    ) -> None:
        """Serve the page, hold the conversation, hand the report over to the page.

        `served` gets the page's address once it answers; `finish` writes the report into the run's folder,
        in a thread, whatever ended the conversation. Raises as `converse` does, and BadRequest where the page
        cannot be served.
        """
        await self.server.start()
        why = "The command was stopped in the terminal."
        try:
            served(self.server.url)
            await converse(self._plan, self.card, self._options, self.screen, progress)
            why = "The conversation is over." if self.page.connected else f"Over: {GONE}."
        except VoicebenchError as problem:
            why = problem.what
            raise
        finally:
            try:
                folder = self.screen.folder
                if folder is not None:
                    await asyncio.to_thread(finish, folder)
                await self._hand_over(folder, why)
            finally:
                await self.server.close()

    async def _hand_over(self, folder: RunFolder | None, why: str) -> None:
        """Give the page the report's files, which it keeps when nobody serves it any more."""
        found = {}
        for name in FILES:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                if folder is not None:
                    found[name] = (folder.path / name).read_text("utf-8")
        self.page.tell(
            type="ended",
            why=why,
            files=[{"name": name, "kind": FILES[name], "content": text} for name, text in found.items()],
        )
        await self.page.close(HAND_OVER_S)

    def _told(self, message: Stamp | PlayedSamples | Flushed | Wish) -> None:
        playout = self.card.playout
        if isinstance(message, PlayedSamples):
            playout.note_played(message)
        elif isinstance(message, Stamp):
            playout.note_stamp(message)
        elif isinstance(message, Flushed):
            playout.note_flushed(message)
        else:
            self._wish(message)

    def _wish(self, wish: Wish) -> None:
        wishes = self._options.wishes
        if wish.what == "mute":
            self.card.capture.muted = bool(wish.on)
            self.page.tell(type="muted", on=self.card.capture.muted)
        elif wish.what == "repeat":
            wishes.press("r")
        elif wish.what == "end":
            wishes.press("q")
        elif wish.mode in {mode.id for mode in self._plan.modes}:
            wishes.mode = wish.mode
