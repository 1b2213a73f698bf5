"""Puts the app into the wheel, as data below `attnviz/streamlit-app`; pyproject.toml says all else.

Its modules import each other as `ui....` and lie in the wheel as they do in a checkout. The hyphen keeps the folder from being
imported: `attnviz app` hands its app.py to Streamlit (`attnviz.starting`).
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

APP = "attnviz/streamlit-app"
FILES = ("app.py", "attention.py", ".streamlit/config.toml")
FOLDERS = ("pages", "ui")


def app_files() -> list[str]:
    """All that the app reads while it runs, beside the library."""
    inside = [path for folder in FOLDERS for path in sorted(Path(folder).rglob("*"))]
    return [*FILES, *(path.as_posix() for path in inside if path.is_file() and path.suffix != ".pyc")]


class WithApp(build_py):
    """The library's modules, and the app's files; an editable install has these where they are."""

    def run(self) -> None:
        """Copies the files."""
        super().run()
        if not self.editable_mode:
            for file in app_files():
                target = self._in_wheel(file)
                self.mkpath(str(Path(target).parent))
                self.copy_file(file, target, preserve_mode=False)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        """What is written."""
        written = [] if self.editable_mode else [self._in_wheel(file) for file in app_files()]
        return [*super().get_outputs(include_bytecode), *written]

    def get_source_files(self) -> list[str]:
        """What a source distribution takes."""
        return [*super().get_source_files(), *app_files()]

    def _in_wheel(self, file: str) -> str:
        return str(Path(self.build_lib, APP, file))


setup(cmdclass={"build_py": WithApp})
