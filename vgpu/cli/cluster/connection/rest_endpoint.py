"""Where the admin REST is, or the API server."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

PREFIX: Final = "/api/v1"


@dataclass(frozen=True, slots=True)
class RestEndpoint:
    """Where the admin REST is, or the API server.

    Attributes:
        url: with PREFIX where it is the admin REST.
        headers: of each request.
        tls: None for http.
        name: for people.
        advice: what to do where it does not answer; empty where that is not known.
        namespace: of the Service behind the API server; empty where another server is asked.
        named_by: the option or variable that names the URL; empty where it was found otherwise.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: ssl.SSLContext | None = None
    name: str = ""
    advice: str = ""
    namespace: str = ""
    named_by: str = ""

    @property
    def is_admin_rest(self) -> bool:
        """Whether the admin REST is expected there, and not the API server."""
        return self.url.endswith(PREFIX)

    @property
    def is_behind_api_server(self) -> bool:
        """Whether requests go through the API server's service proxy, which may answer in place of the admin REST."""
        return bool(self.namespace)
