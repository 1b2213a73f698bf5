"""What is on the pages of a PDF as Chromium writes it: its sizes and its words."""

import re
import zlib

POINTS = 72  # in an inch


def page_sizes(pdf: bytes) -> list[tuple[float, float]]:
    """Width and height of each page, inches."""
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    return [(float(width) / POINTS, float(height) / POINTS) for width, height in boxes]


def words(pdf: bytes) -> str:
    """All letters in the order in which they are drawn: their codes through the table of their font, ISO 32000-1, 9.10."""
    objects = {int(number): body for number, body in re.findall(rb"(\d+) 0 obj(.*?)endobj", pdf, re.S)}
    fonts = {}
    for body in objects.values():
        for name, number in re.findall(rb"/(F\d+) (\d+) 0 R", body):
            table = re.search(rb"/ToUnicode (\d+) 0 R", objects[int(number)])
            if table:
                fonts[name] = _letters(_stream(objects[int(table[1])]))
    text, letters = "", dict[bytes, str]()
    for body in objects.values():
        if b"stream" not in body:
            continue
        for font, codes in re.findall(rb"/(F\d+) [\d.]+ Tf|<([0-9A-Fa-f]+)>(?=[^>]*?T[jJ])", _stream(body)):
            letters = fonts.get(font, letters) if font else letters
            size = len(next(iter(letters), b"00"))
            text += "".join(
                letters.get(codes[at : at + size].upper(), "") for at in range(0, len(codes), size)
            )
    return text


def _stream(body: bytes) -> bytes:
    content = body.split(b"stream", 1)[1].rsplit(b"endstream", 1)[0].strip(b"\r\n")
    return zlib.decompress(content) if b"/FlateDecode" in body else content


def _letters(table: bytes) -> dict[bytes, str]:
    """The letters of a font by their codes, in hexadecimal digits."""
    letters = {}
    for block in re.findall(rb"beginbfchar(.*?)endbfchar", table, re.S):
        for code, letter in re.findall(rb"<(\w+)> <(\w+)>", block):
            letters[code.upper()] = bytes.fromhex(letter.decode()).decode("utf-16-be")
    for block in re.findall(rb"beginbfrange(.*?)endbfrange", table, re.S):
        for first, last, letter in re.findall(rb"<(\w+)> <(\w+)> <(\w+)>", block):
            for step in range(int(last, 16) - int(first, 16) + 1):
                code = b"%0*X" % (len(first), int(first, 16) + step)
                letters[code] = chr(int(letter, 16) + step)
    return letters
