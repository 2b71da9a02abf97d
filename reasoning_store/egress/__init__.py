"""Egress makes a view into a request: which thinking is sent, what it counts, and why.

``request`` shows the room on one page. The policy is read for each request (BR-008) and never
touches a stored row (BR-009). Egress must not know SQL or a protocol's own words.
"""
