"""Export to lines, and import from them."""
