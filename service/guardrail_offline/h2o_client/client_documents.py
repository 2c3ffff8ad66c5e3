"""Documents that questions are about."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from guardrail_offline.h2o_client.client_folder import ClientFolder, moment


@dataclass(frozen=True)
class TestDocument:
    """A document that questions are about; `url` is how test cases name it.

    `received` says that an imported suite names it: if it is a file here, it is not read.
    """

    __test__ = False  # the name is H2O's; it is no test of pytest's

    key: str
    name: str
    url: str
    description: str = ""
    create_time: datetime | None = field(default=None, compare=False)
    update_time: datetime | None = field(default=None, compare=False)
    _folder: ClientFolder | None = field(default=None, repr=False, compare=False)
    received: bool = False

    def delete(self) -> None:
        """Take it away for good, from the tests that are linked to it, too."""
        if self._folder is None:
            raise KeyError(self.key)
        _Documents(self._folder).delete(self.key)


@dataclass(frozen=True)
class _Documents:
    """The documents of a client."""

    _folder: ClientFolder

    def create(
        self, name: str, url: str, description: str = "", *, received: bool = False
    ) -> TestDocument:
        """Keep a document that no test is linked to yet.

        Args:
            name: What to call it.
            url: Its address, or the path of a file here: only files here are read.
            description: Free text.
            received: Whether somebody else's suite names it, so that no file is read for it.
        """
        record = {"name": name, "url": url, "description": description or "", "received": received}
        return self.get(self._folder.add("document", record)["key"])

    def get(self, key: str) -> TestDocument:
        """Return a document; KeyError if there is none with this key."""
        found = self._folder.get(key)
        return TestDocument(
            found["key"],
            found["name"],
            found["url"],
            found["description"],
            moment(found, "create_time"),
            moment(found, "update_time"),
            self._folder,
            bool(found.get("received")),
        )

    def list(self) -> list[TestDocument]:
        """Return all documents, in the order they were made."""
        return [self.get(found["key"]) for found in self._folder.all("document")]

    def delete(self, key: str) -> None:
        """Take a document away; KeyError if there is none with this key."""
        self._folder.delete(key)
        for test in self._folder.all("test"):
            if key in test["documents"]:
                with self._folder.change(test["key"]) as record:
                    record["documents"] = [one for one in record["documents"] if one != key]
