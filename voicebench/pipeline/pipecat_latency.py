"""pipecat's own figure of the latency, as a cross-check beside ours: on the monotonic clock, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from voicebench.clock import NS_PER_S, now_ns


def latency_observer(told: Callable[[float], None]) -> Any:
    """pipecat's observer of user-to-bot latency; `told` gets each figure in ms.

    pipecat takes the person's end of speech from the wall clock's time in the detector's frame. Here it is
    the instant at which that frame is first pushed, less the detector's silence: a clock that is set moves
    nothing.
    """
    from pipecat.frames.frames import VADUserStoppedSpeakingFrame
    from pipecat.observers.base_observer import FramePushed
    from pipecat.observers.user_bot_latency_observer import UserBotLatencyObserver
    from pipecat.processors.frame_processor import FrameDirection

    def seconds() -> float:
        return now_ns() / NS_PER_S

    class OnOurClock(UserBotLatencyObserver):
        """Reads the monotonic clock alone."""

        _stopped_s = 0.0

        async def on_push_frame(self, data: FramePushed) -> None:
            await super().on_push_frame(data)
            frame = data.frame
            if isinstance(frame, VADUserStoppedSpeakingFrame) and data.direction == FrameDirection.DOWNSTREAM:
                if data.first_push:
                    self._stopped_s = data.timestamp / NS_PER_S - frame.stop_secs
                # The parent sets the wall clock's time at each hop.
                self._user_stopped_time = self._user_turn_start_time = self._stopped_s

    observer = OnOurClock(time_source=seconds)

    async def on_measured(_: object, latency_s: float) -> None:
        told(latency_s * 1000.0)

    observer.add_event_handler("on_latency_measured", on_measured)
    return observer
