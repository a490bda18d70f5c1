"""The model files of the embedded default: what they are, where they lie, how they are fetched and checked.

`catalogue` names them, `store` fetches and verifies them, `resolve` turns a model name of a config into
files. Standard library only, so that it also serves an installation without any extra.
"""
