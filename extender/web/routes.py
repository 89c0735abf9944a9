"""Serves the page's files, which are read once at start."""

from importlib import resources
from pathlib import PurePosixPath
from typing import Final

from fastapi import APIRouter, Request, Response

from extender.web import file_answer

FOLDER: Final = "web"
SERVED: Final = file_answer.MEDIA_TYPES.keys()
INDEX: Final = "index.html"

router = APIRouter(include_in_schema=False)


def _files() -> dict[str, file_answer.File]:
    """Return the files of the page and of vendored libraries by name: browsers load these as they are, too."""
    here = resources.files("extender.web")
    folders = [here.joinpath("files"), *(folder for folder in here.joinpath("vendor").iterdir() if folder.is_dir())]
    found = [path for folder in folders for path in folder.iterdir() if PurePosixPath(path.name).suffix in SERVED]
    return {path.name: file_answer.read(path.name, path.read_bytes()) for path in found}


FILES: Final = _files()


@router.get("/")
async def page(request: Request) -> Response:
    """Answer the page itself."""
    return file_answer.of(FILES[INDEX], request)


@router.get(f"/{FOLDER}/{{name}}")
async def file(request: Request, name: str) -> Response:
    """Answer a file that the page refers to."""
    return file_answer.of(FILES.get(name), request)
