"""Pure rules about tools: registry, selection, compatibility, scope."""
