"""pipecat is silenced before any of these tests imports it."""

from voicebench.stages.quiet import hush_pipecat

hush_pipecat()
