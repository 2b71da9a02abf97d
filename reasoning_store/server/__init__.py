"""The server: a gateway before a provider, the Conversations API, and the inspector's pages."""
