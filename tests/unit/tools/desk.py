"""The shipped tools of one package, called as the daemon calls them."""

from tests.unit.tools.test_local import Rig


class PackageDesk(Rig):
    """`package` is that of the tools; `stores`, where there are any, are closed by the test."""

    package = ""

    async def ask(self, tool, **args):
        return (await self.good(f"{self.package}:{tool}", args)).data

    async def fails(self, tool, **args):
        """Return the error of a call whose arguments have the right form."""
        definition = self.registry.snapshot().find(f"{self.package}:{tool}").definition
        filled, problems = self.registry.check_args(definition, args)
        assert problems == []
        response = await self.run(f"{self.package}:{tool}", filled)
        assert not response.ok
        return response.error
