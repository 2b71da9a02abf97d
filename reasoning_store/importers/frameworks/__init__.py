"""Histories that frameworks dump, one module a framework."""
