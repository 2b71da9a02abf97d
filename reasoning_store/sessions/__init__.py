"""A session's handle and its parts: its branch, its view for a request, settings, compaction."""
