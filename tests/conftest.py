"""For all tests: pipecat imported without its banner and its log."""

from voicebench.stages.quiet import hush_pipecat

hush_pipecat()
