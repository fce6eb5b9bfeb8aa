"""QR codes of the builder, read by a decoder of its own and compared with published examples."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.web.test_node import WEB, run, tool

ADDRESS = "https://collect.example.org/s/" + "3f" * 32
LONGEST = (14, 26, 42, 62, 84, 106, 122, 152, 180, 213)
"""Bytes that fit into each version: table 7 of the standard."""
TEXTS = ["a", "http://127.0.0.1:8377/", "Grüße, 你好", ADDRESS, *("x" * n for n in LONGEST)]
BLOCKS = {
    1: (10, [16]),
    2: (16, [28]),
    3: (26, [44]),
    4: (18, [32] * 2),
    5: (24, [43] * 2),
    6: (16, [27] * 4),
    7: (18, [31] * 4),
    8: (22, [38, 38, 39, 39]),
    9: (22, [36, 36, 36, 37, 37]),
    10: (26, [43, 43, 43, 43, 44]),
}
"""Check bytes of a block and data bytes of each, by version: table 9 of the standard, level M."""
ALIGNED = {2: 18, 3: 22, 4: 26, 5: 30, 6: 34, 7: 38, 8: 42, 9: 46, 10: 50}


def javascript(body: str) -> Any:
    script = f'import {{ modules, checkBytes, formatBits, versionBits }} from "{(WEB / "pages" / "qr.js").as_uri()}";'
    done = run(tool("node"), "--input-type=module", "-e", f"{script} console.log(JSON.stringify({body}))")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def powers() -> list[int]:
    found = [1]
    while len(found) < 255:
        found.append(found[-1] << 1 ^ (0x11D if found[-1] & 0x80 else 0))
    return found


EXP = powers()
LOG = {value: place for place, value in enumerate(EXP)}


def evaluate(block: list[int], root: int) -> int:
    """The polynomial of a block at the power 2^root."""
    value = 0
    for byte in block:
        value = (EXP[(LOG[value] + root) % 255] if value else 0) ^ byte
    return value


def reserved(size: int, version: int) -> set[tuple[int, int]]:
    """Where no data stand."""
    found = {(y, x) for y in range(9) for x in range(9)}
    found |= {(y, x) for y in range(9) for x in range(size - 8, size)}
    found |= {(y, x) for y in range(size - 8, size) for x in range(9)}
    found |= {(6, i) for i in range(size)} | {(i, 6) for i in range(size)}
    if version > 1:
        last = ALIGNED[version]
        centers = [6, last] if version < 7 else [6, (6 + last) // 2, last]
        for cy in centers:
            for cx in centers:
                if (cy, cx) not in ((6, 6), (6, last), (last, 6)):
                    found |= {(cy + y, cx + x) for y in range(-2, 3) for x in range(-2, 3)}
    if version >= 7:
        found |= {(y, x) for y in range(6) for x in range(size - 11, size - 8)}
        found |= {(y, x) for y in range(size - 11, size - 8) for x in range(6)}
    return found


MASKED = (
    lambda y, x: (y + x) % 2,
    lambda y, x: y % 2,
    lambda y, x: x % 3,
    lambda y, x: (y + x) % 3,
    lambda y, x: (y // 2 + x // 3) % 2,
    lambda y, x: y * x % 2 + y * x % 3,
    lambda y, x: (y * x % 2 + y * x % 3) % 2,
    lambda y, x: ((y + x) % 2 + y * x % 3) % 2,
)


def decoded(grid: list[list[bool]]) -> str:
    """The text of a code; fails if a pattern or a check byte is wrong."""
    size = len(grid)
    version = (size - 17) // 4
    for top, left in ((0, 0), (0, size - 7), (size - 7, 0)):
        corner = [[int(grid[top + y][left + x]) for x in range(7)] for y in range(7)]
        ring = [[int(max(abs(y - 3), abs(x - 3)) != 2) for x in range(7)] for y in range(7)]
        assert corner == ring
    assert [grid[6][i] for i in range(8, size - 8)] == [i % 2 == 0 for i in range(8, size - 8)]
    near = [*((8, x) for x in (0, 1, 2, 3, 4, 5, 7, 8)), *((y, 8) for y in (7, 5, 4, 3, 2, 1, 0))]
    far = [*((y, 8) for y in range(size - 1, size - 8, -1)), *((8, x) for x in range(size - 8, size))]
    first, second = ("".join(str(int(grid[y][x])) for y, x in places) for places in (near, far))
    assert first == second
    format = int(first, 2) ^ 0b101010000010010
    assert format >> 13 == 0b00, "error correction M"
    mask, taken = MASKED[format >> 10 & 7], reserved(size, version)
    bits = []
    columns = [*range(size - 1, 6, -2), *range(5, 0, -2)]
    for turn, right in enumerate(columns):
        for y in range(size - 1, -1, -1) if turn % 2 == 0 else range(size):
            bits += [int(grid[y][x]) ^ int(mask(y, x) == 0) for x in (right, right - 1) if (y, x) not in taken]
    checks, sizes = BLOCKS[version]
    words = [int("".join(map(str, bits[i : i + 8])), 2) for i in range(0, len(bits) - 7, 8)]
    blocks: list[list[int]] = [[] for _ in sizes]
    left = iter(words)
    for place in range(max(sizes)):
        for block, length in zip(blocks, sizes, strict=True):
            if place < length:
                block.append(next(left))
    for _ in range(checks):
        for block in blocks:
            block.append(next(left))
    for block in blocks:
        assert [evaluate(block, root) for root in range(checks)] == [0] * checks
    data = [byte for block, length in zip(blocks, sizes, strict=True) for byte in block[:length]]
    stream = "".join(f"{byte:08b}" for byte in data)
    width = 8 if version < 10 else 16
    assert stream[:4] == "0100", "bytes"
    count = int(stream[4 : 4 + width], 2)
    content = stream[4 + width : 4 + width + 8 * count]
    return bytes(int(content[i : i + 8], 2) for i in range(0, len(content), 8)).decode()


def test_a_decoder_reads_what_was_written() -> None:
    codes = javascript(f"{json.dumps(TEXTS)}.map(modules)")
    assert [decoded(code) for code in codes] == TEXTS
    assert [(len(code) - 17) // 4 for code in codes[-10:]] == list(BLOCKS), "each in the smallest version"


def test_a_code_with_a_wrong_module_is_noticed() -> None:
    """The check bytes are checked: otherwise the decoder would believe anything."""
    (code,) = javascript(f"[{json.dumps(ADDRESS)}].map(modules)")
    code[20][20] = not code[20][20]
    with pytest.raises(AssertionError):
        decoded(code)


def test_check_bytes_and_formats_are_those_of_published_examples() -> None:
    """HELLO WORLD in version 1-M, as tutorials of the standard work it out; tables C.1 and D.1 of the standard."""
    data = [32, 91, 11, 120, 209, 114, 220, 77, 67, 64, 236, 17, 236, 17, 236, 17]
    assert javascript(f"checkBytes({data}, 10)") == [196, 35, 39, 119, 235, 215, 231, 226, 93, 23]
    formats = [0x5412, 0x5125, 0x5E7C, 0x5B4B, 0x45F9, 0x40CE, 0x4F97, 0x4AA0]
    assert javascript("[0, 1, 2, 3, 4, 5, 6, 7].map(formatBits)") == formats
    assert javascript("[7, 8, 9, 10].map(versionBits)") == [0x07C94, 0x085BC, 0x09A99, 0x0A4D3]


def test_what_is_too_long_is_refused() -> None:
    found = javascript('(() => { try { return modules("x".repeat(214)); } catch (error) { return error.message; } })()')
    assert "too long" in found
