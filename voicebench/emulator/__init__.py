"""The provider emulator: Anthropic and OpenAI endpoints on loopback that replay known timings.

It answers as the vendors' servers do, at times that are planned before the first byte and written down as
they happen, so that everything a client measures can be held against the truth. A house of its own: it
imports `voicebench.errors` and `voicebench.clock` and nothing else of the package.

Start it with `voicebench emulate`, or from Python with `voicebench.emulator.process.start()`.
"""
