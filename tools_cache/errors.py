"""What can be wrong with a name, a definition or a registry document. Each error names the
field and the fix.
"""


class ToolsError(Exception):
    """Base of every error of this package; never raised itself."""


class BadToolName(ToolsError):
    """A name that is not `package:tool`."""


class BadDefinition(ToolsError):
    """One tool (or app) that cannot be taken into the registry; the others are not touched by
    it.
    """


class BadManifest(ToolsError):
    """A whole registry document that cannot take force: not JSON, wrong hash, wrong version,
    too large.
    """


class MissingForm(ToolsError):
    """A tool that one provider of models cannot be told of; the words name both."""
