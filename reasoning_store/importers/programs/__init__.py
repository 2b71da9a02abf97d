"""Histories of other programs, one module a program."""
