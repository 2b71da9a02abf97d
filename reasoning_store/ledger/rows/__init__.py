"""Rows: values as columns and back, and the statements that several subjects share."""
