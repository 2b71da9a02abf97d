"""What may leave: which thinking goes back to a model, what the request counts, and why.

The policy is read for each request (BR-008) and never touches what is stored (BR-009).
The room knows policy, contracts and counts; it must not know SQL, and a protocol's own
words stay in ``wire``.
"""
