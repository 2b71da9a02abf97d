"""The wire formats of providers, a folder each with its reader and its writer side by side.

This is the only room that knows a provider's words. A protocol reads and writes; it decides
nothing about which blocks are stored or sent.
"""
