"""The knowledge base of one call: the documents and notes of all, and the sections of the caller's
own documents.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from edge.storage.sqlite.errors import StoreError
from tools_cache.api.handed import Database
from tools_cache.api.knowledge import Document, Evidence, Knowledge, Question, ranked
from tools_cache.errors import ToolFailure
from tools_cache.everyday import domain_documents as sections

Documents = Callable[[], Awaitable[Database | None]]
"""Returns where the caller's documents in sections are; None if their tools are not open to it."""
_log: Final = logging.getLogger(__name__)


class UserKnowledge:
    """Implements `tools_cache.api.knowledge.Knowledge`. Sections are searched where they are, as
    they are encrypted: the index on disk can be read.
    """

    def __init__(self, shared: Knowledge, documents: Documents) -> None:
        self._shared = shared
        self._documents = documents

    async def search(self, question: Question) -> Sequence[Evidence]:
        """See `Knowledge`. Raise ToolFailure, StoreError if nothing is found and one of the two
        could not be searched.
        """
        own: Sequence[Evidence] = ()
        problem: ToolFailure | StoreError | None = None
        try:
            if (database := await self._documents()) is not None:
                documents = await sections.DomainDocuments(database).all()
                own = sections.evidence(documents, question)
        except (ToolFailure, StoreError) as e:
            _log.warning("documents in sections cannot be searched: %s", e)
            problem = e
        try:
            found = await self._shared.search(question)
        except ToolFailure:
            if not own:
                raise
            found = ()
        if problem is not None and not found:
            raise problem
        return ranked((*found, *own), question.limit)

    async def get(self, document: str) -> Document | None:
        """See `Knowledge`."""
        if not document.startswith(sections.SECTION_ID):
            return await self._shared.get(document)
        if (database := await self._documents()) is None:
            return None
        return sections.whole_section(await sections.DomainDocuments(database).all(), document)
