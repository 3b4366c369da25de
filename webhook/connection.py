"""One connection of a client: uvicorn's, with deadlines, and without lost requests at shutdown.

uvicorn waits for ever for the rest of a request's head, and for the first byte of a new connection. At
shutdown it closes connections on which a request has begun to arrive, so that a review would be lost.
"""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: How long the head of a request may take to arrive; it is one packet.
HEAD_DEADLINE_S: Final = 2.0
#: How long a connection that is new when the server ends has to send its request.
LAST_CHANCE_S: Final = 1.0


class ReviewConnection(HttpToolsProtocol):
    """HTTP on one connection."""

    _head_begun = False
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn
        """Wait for the first request as long as for later ones, not for ever."""
        super().connection_made(transport)
        self._await_request()

    def data_received(self, data: bytes) -> None:
        """Continue a request, or begin one."""
        super().data_received(data)
        if self._head_begun:
            self._give_it(HEAD_DEADLINE_S)
        elif self._idle and self.timeout_keep_alive_task is None:
            # It was no request, such as a blank line.
            self._await_request()

    def on_message_begin(self) -> None:
        """The first byte of a head."""
        super().on_message_begin()
        self._head_begun = True

    def on_headers_complete(self) -> None:
        """The last byte of a head."""
        self._head_begun = False
        self._forget_deadline()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more comes."""
        self._head_begun = False
        self._forget_deadline()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close the connection after the requests that have begun are answered."""
        if self._head_begun:
            return
        if self.cycle is None:
            # A client that has just connected will send a request in a moment.
            self._give_it(LAST_CHANCE_S)
            return
        super().shutdown()

    @property
    def _idle(self) -> bool:
        over = self.cycle is None or self.cycle.response_complete
        return over and not self.transport.is_closing()

    def _await_request(self) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def _give_it(self, seconds: float) -> None:
        if self._deadline is None and not self.transport.is_closing():
            self._deadline = self.loop.call_later(seconds, self.transport.close)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
