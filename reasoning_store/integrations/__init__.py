"""The store inside other programs: an adapter a framework, and a transport for their clients.

Each is an extra. They use the public names of the package.
"""
