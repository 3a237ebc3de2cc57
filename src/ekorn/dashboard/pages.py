"""The files of the page, as routes. They hold no data, so they are sent without a token."""

from __future__ import annotations

from importlib.resources import files

from ekorn.web.http_messages import Request, Response
from ekorn.web.routes import Handler, Routes

__all__ = ["add_pages"]

_TYPES = {
    ".html": "text/html; charset=UTF-8",
    ".css": "text/css; charset=UTF-8",
    ".js": "text/javascript; charset=UTF-8",
}
# Nothing from elsewhere, and no code or style that is not in a file of ours.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def add_pages(routes: Routes) -> None:
    """Add a route for each file of the page, and the page itself as `/`."""
    for file in sorted(files("ekorn.dashboard").joinpath("static").iterdir(), key=lambda each: each.name):
        suffix = file.name[file.name.rfind(".") :]
        if suffix in _TYPES:
            handler = _sending(file.read_bytes(), _TYPES[suffix])
            routes.add("GET", f"/{file.name}", handler, "A file of the page", is_public=True)
            if file.name == "index.html":
                routes.add("GET", "/", handler, "The page", is_public=True)


def _sending(content: bytes, content_type: str) -> Handler:
    answer = Response(content, content_type=content_type, headers={"Content-Security-Policy": _POLICY})

    def send(request: Request) -> Response:
        return answer

    return send
