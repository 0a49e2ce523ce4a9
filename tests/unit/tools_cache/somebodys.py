"""A tool of somebody else's, to be imported by handlers of the tests."""

from tools_cache.api.base import Tool


class Somebodys(Tool):
    async def run(self, args):
        return None
