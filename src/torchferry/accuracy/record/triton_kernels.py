"""The figures of many tensors by two kernels of Triton's, for whatever device Triton compiles for.

The first reads each tensor once, as words of eight bytes, by as many programs as it has tiles, up to a number; each of
them leaves what it has found. The second adds up what the programs of a tensor have left, and writes its row as the
file has it. What is added up in which order depends on the length of the tensor alone.
"""

# Triton looks at annotations as a part of its language, so there are none of Python's.
# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import triton
import triton.language as tl

COLUMNS = 9  # of what a program leaves, and of a row
ENTRY = 6  # numbers of a tensor in a table: address, bytes, first program, programs, numbers, kind
BEYOND = 1 << 40  # is added to each number, so that Triton takes it for a long one
TILE = 1024  # words

_BOOL, _UINT8, _INT8, _E4M3FN, _E5M2, _E4M3FNUZ, _E5M2FNUZ, _INT16, _UINT16 = map(tl.constexpr, range(9))
_FLOAT16, _BFLOAT16, _INT32, _UINT32, _FLOAT32, _INT64, _UINT64, _FLOAT64 = map(tl.constexpr, range(9, 17))
_BEYOND = tl.constexpr(BEYOND)
_TILE = tl.constexpr(TILE)
_COLUMNS, _ENTRY = tl.constexpr(COLUMNS), tl.constexpr(ENTRY)
_AT_ONCE = tl.constexpr(128)  # programs of a tensor whose results are added up together
_STEP = tl.constexpr(0x9E3779B97F4A7C15 - (1 << 64))
_FIRST, _SECOND = tl.constexpr(0xBF58476D1CE4E5B9 - (1 << 64)), tl.constexpr(0x94D049BB133111EB - (1 << 64))
_HALF = tl.constexpr(0xFFFFFFFF)


@triton.jit
def _small_float(byte, exponent_bits: tl.constexpr, bias: tl.constexpr):
    """The number of a float of eight bits, apart from what is not finite."""
    mantissa_bits: tl.constexpr = 7 - exponent_bits
    mantissa = byte & ((1 << mantissa_bits) - 1)
    exponent = (byte >> mantissa_bits) & ((1 << exponent_bits) - 1)
    bits = ((exponent + (127 - bias)) << 23) | (mantissa << (23 - mantissa_bits))
    least: tl.constexpr = 2.0 ** (1 - bias - mantissa_bits)
    size = tl.where(exponent == 0, mantissa.to(tl.float32) * least, bits.to(tl.float32, bitcast=True))
    return tl.where((byte & 0x80) != 0, -size, size)


@triton.jit
def _number(word, place: tl.constexpr, kind: tl.constexpr):
    """The element at this place of a word, as a float that holds it."""
    if kind == _FLOAT64:
        number = word.to(tl.float64, bitcast=True)
    elif kind == _INT64:
        number = word.to(tl.float64)
    elif kind == _UINT64:
        number = word.to(tl.uint64).to(tl.float64)
    elif kind == _FLOAT32:
        number = _half(word, place).to(tl.float32, bitcast=True)
    elif kind == _INT32:
        number = _half(word, place).to(tl.float64)
    elif kind == _UINT32:
        number = _half(word, place).to(tl.uint32).to(tl.float64)
    elif kind == _BFLOAT16:
        half = _half(word, place // 2)
        upper = half << 16 if place % 2 == 0 else half & -65536
        number = upper.to(tl.float32, bitcast=True)
    elif kind >= _INT16:
        quarter = _half(word, place // 2) >> (16 * (place % 2))
        if kind == _FLOAT16:
            number = quarter.to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32)
        elif kind == _INT16:
            number = quarter.to(tl.int16).to(tl.float32)
        else:
            number = (quarter & 0xFFFF).to(tl.float32)
    else:
        number = _number_of_byte((_half(word, place // 4) >> (8 * (place % 4))) & 0xFF, kind)
    return number


@triton.jit
def _number_of_byte(byte, kind: tl.constexpr):
    if kind == _BOOL:
        number = tl.where(byte != 0, 1.0, 0.0)
    elif kind == _UINT8:
        number = byte.to(tl.float32)
    elif kind == _INT8:
        number = byte.to(tl.int8).to(tl.float32)
    elif kind == _E4M3FN:
        number = tl.where((byte & 0x7F) == 0x7F, float("nan"), _small_float(byte, 4, 7))
    elif kind == _E4M3FNUZ:
        number = tl.where(byte == 0x80, float("nan"), _small_float(byte, 4, 8))
    elif kind == _E5M2FNUZ:
        number = tl.where(byte == 0x80, float("nan"), _small_float(byte, 5, 16))
    else:
        rest = byte & 0x7F
        infinite = tl.where((byte & 0x80) != 0, float("-inf"), float("inf"))
        number = tl.where(rest == 0x7C, infinite, _small_float(byte, 5, 15))
        number = tl.where(rest > 0x7C, float("nan"), number)
    return number


@triton.jit
def _half(word, place: tl.constexpr):
    return (word >> (32 * place)).to(tl.int32)


@triton.jit
def _with_finite(word, zeros, least, greatest, total, squares, kind: tl.constexpr, size: tl.constexpr):
    """Take the elements of words in, in the hope that all are finite; if not, the squares tell."""
    for place in tl.static_range(8 // size):
        number = _number(word, place, kind)
        zeros += (number == 0.0).to(tl.int32)
        least = tl.minimum(least, number)
        greatest = tl.maximum(greatest, number)
        exact = number.to(tl.float64)
        total += exact
        squares += exact * exact
    return zeros, least, greatest, total, squares


@triton.jit
def _with_any(
    word, there, nans, infinite, zeros, least, greatest, total, squares, kind: tl.constexpr, size: tl.constexpr
):  # fmt: skip
    """Take the elements of words in, so many of each as there are."""
    for place in tl.static_range(8 // size):
        number = _number(word, place, kind)
        is_one = there > place
        is_nan = (number != number) & is_one
        is_infinite = (tl.abs(number) == float("inf")) & is_one
        is_finite = is_one & (is_nan == 0) & (is_infinite == 0)
        nans += is_nan.to(tl.int32)
        infinite += is_infinite.to(tl.int32)
        zeros += ((number == 0.0) & is_one).to(tl.int32)
        least = tl.minimum(least, tl.where(is_finite, number, float("inf")))
        greatest = tl.maximum(greatest, tl.where(is_finite, number, float("-inf")))
        exact = tl.where(is_finite, number, 0.0).to(tl.float64)
        total += exact
        squares += exact * exact
    return nans, infinite, zeros, least, greatest, total, squares


@triton.jit(do_not_specialize=["address", "length", "first", "programs", "wanted", "start"])
def sum_up(
    address, length, first, programs, wanted, start, table, left, kind: tl.constexpr, size: tl.constexpr
):  # fmt: skip
    """Read one tensor; or, where a kind is wanted, those of this kind among the ones that a table has from a place on.
    `left`: where each program leaves what it has found."""
    place = tl.program_id(0).to(tl.int64)
    address, length, first, programs = (
        address - _BEYOND,
        length - _BEYOND,
        first - _BEYOND,
        programs - _BEYOND,
    )
    if wanted >= _BEYOND:
        entry = table + (start - _BEYOND + tl.program_id(1)) * _ENTRY
        address, length = tl.load(entry), tl.load(entry + 1)
        first, programs = tl.load(entry + 2), tl.load(entry + 3)
        programs = tl.where(tl.load(entry + 5) == wanted - _BEYOND, programs, 0)
    if place < programs:
        _sum_up_part(address, length, place, programs, left + (first + place) * _COLUMNS, kind, size)


@triton.jit
def _sum_up_part(address, length, place, programs, row, kind: tl.constexpr, size: tl.constexpr):
    """Every so many tiles of one tensor."""
    data = address.to(tl.pointer_type(tl.int64))
    extreme_type: tl.constexpr = tl.float64 if kind >= _INT32 and kind != _FLOAT32 else tl.float32
    is_float: tl.constexpr = (
        (kind >= _E4M3FN and kind < _INT16)
        or (kind == _FLOAT16 or kind == _BFLOAT16)  # noqa: SIM109 - Triton knows no `in`
        or (kind == _FLOAT32 or kind == _FLOAT64)  # noqa: SIM109
    )
    lanes = tl.arange(0, _TILE)
    zeros = tl.zeros([_TILE], tl.int32)
    least = tl.full([_TILE], float("inf"), extreme_type)
    greatest = tl.full([_TILE], float("-inf"), extreme_type)
    total = tl.zeros([_TILE], tl.float64)
    squares = tl.zeros([_TILE], tl.float64)
    products = tl.zeros([_TILE], tl.int64)
    plain = tl.zeros([_TILE], tl.int64)
    whole = length // (_TILE * 8)  # tiles
    key = (place * _TILE + 1 + lanes) * _STEP
    tile = place
    while tile < whole:
        word = tl.load(data + tile * _TILE + lanes)
        keyed = word ^ key
        products += (keyed & _HALF) * ((keyed >> 32) & _HALF)
        plain += word
        key += programs * _TILE * _STEP
        zeros, least, greatest, total, squares = _with_finite(
            word, zeros, least, greatest, total, squares, kind, size
        )
        tile += programs
    nans = tl.zeros([_TILE], tl.int32)
    infinite = tl.zeros([_TILE], tl.int32)
    if is_float:
        if (tl.sum(squares) < float("inf")) == 0:
            zeros = tl.zeros([_TILE], tl.int32)
            least = tl.full([_TILE], float("inf"), extreme_type)
            greatest = tl.full([_TILE], float("-inf"), extreme_type)
            total = tl.zeros([_TILE], tl.float64)
            squares = tl.zeros([_TILE], tl.float64)
            tile = place
            while tile < whole:
                word = tl.load(data + tile * _TILE + lanes)
                nans, infinite, zeros, least, greatest, total, squares = _with_any(
                    word, 8, nans, infinite, zeros, least, greatest, total, squares, kind, size
                )
                tile += programs
    if (whole % programs == place) & (length > whole * (_TILE * 8)):
        index = whole * _TILE + lanes
        rest = tl.maximum(tl.minimum(length - index * 8, 8), 0)
        word = tl.load(data + index, mask=rest > 0, other=0)
        word = tl.where(rest < 8, word & ((1 << (rest * 8 % 64)) - 1), word)
        keyed = word ^ ((index + 1) * _STEP)
        products += tl.where(rest > 0, (keyed & _HALF) * ((keyed >> 32) & _HALF), 0)
        plain += word
        nans, infinite, zeros, least, greatest, total, squares = _with_any(
            word, rest // size, nans, infinite, zeros, least, greatest, total, squares, kind, size
        )
    tl.store(row, tl.sum(nans.to(tl.int64)))
    tl.store(row + 1, tl.sum(infinite.to(tl.int64)))
    tl.store(row + 2, tl.sum(zeros.to(tl.int64)))
    tl.store(row + 3, tl.sum(products))
    tl.store(row + 4, tl.sum(plain))
    floats = row.to(tl.pointer_type(tl.float64))
    tl.store(floats + 5, tl.min(least).to(tl.float64))
    tl.store(floats + 6, tl.max(greatest).to(tl.float64))
    tl.store(floats + 7, tl.sum(total))
    tl.store(floats + 8, tl.sum(squares))


@triton.jit(do_not_specialize=["start"])
def write_rows(start, table, left, rows):
    """Each program writes the row of one tensor of a table, from what the programs that read it have left."""
    tensor = start - _BEYOND + tl.program_id(0)
    entry = table + tensor * _ENTRY
    length, first, programs, numbers = (
        tl.load(entry + 1),
        tl.load(entry + 2),
        tl.load(entry + 3),
        tl.load(entry + 4),
    )
    nans = tl.zeros([_AT_ONCE], tl.int64)
    infinite = tl.zeros([_AT_ONCE], tl.int64)
    zeros = tl.zeros([_AT_ONCE], tl.int64)
    products = tl.zeros([_AT_ONCE], tl.int64)
    plain = tl.zeros([_AT_ONCE], tl.int64)
    least = tl.full([_AT_ONCE], float("inf"), tl.float64)
    greatest = tl.full([_AT_ONCE], float("-inf"), tl.float64)
    total = tl.zeros([_AT_ONCE], tl.float64)
    squares = tl.zeros([_AT_ONCE], tl.float64)
    place = tl.arange(0, _AT_ONCE).to(tl.int64)
    some = programs * 0
    while some < programs:
        is_there = place < programs
        row = left + (first + place) * _COLUMNS
        floats = row.to(tl.pointer_type(tl.float64))
        nans += tl.load(row, mask=is_there, other=0)
        infinite += tl.load(row + 1, mask=is_there, other=0)
        zeros += tl.load(row + 2, mask=is_there, other=0)
        products += tl.load(row + 3, mask=is_there, other=0)
        plain += tl.load(row + 4, mask=is_there, other=0)
        least = tl.minimum(least, tl.load(floats + 5, mask=is_there, other=float("inf")))
        greatest = tl.maximum(greatest, tl.load(floats + 6, mask=is_there, other=float("-inf")))
        total += tl.load(floats + 7, mask=is_there, other=0.0)
        squares += tl.load(floats + 8, mask=is_there, other=0.0)
        place += _AT_ONCE
        some += _AT_ONCE
    not_finite = tl.sum(nans) + tl.sum(infinite)
    finite = numbers - not_finite
    has_any = finite > 0
    share = tl.where(has_any, finite, 1).to(tl.float64)
    out = rows + tensor * _COLUMNS
    floats_out = out.to(tl.pointer_type(tl.float64))
    tl.store(out, numbers)
    tl.store(out + 1, tl.sum(nans))
    tl.store(out + 2, tl.sum(infinite))
    tl.store(out + 3, tl.sum(zeros))
    tl.store(floats_out + 4, tl.where(has_any, tl.min(least), 0.0))
    tl.store(floats_out + 5, tl.where(has_any, tl.max(greatest), 0.0))
    tl.store(floats_out + 6, tl.sum(total) / share)
    tl.store(floats_out + 7, tl.sqrt(tl.sum(squares) / share))
    tl.store(out + 8, _mixed(tl.sum(products), tl.sum(plain), length))


@triton.jit
def _mixed(products, words, length):
    """As csrc/statistics.cpp mixes a checksum."""
    sums = products.to(tl.uint64)
    mixed = (sums ^ (sums >> 29)).to(tl.int64) * _FIRST + words * _SECOND + length * _STEP
    bits = mixed.to(tl.uint64)
    mixed = (bits ^ (bits >> 30)).to(tl.int64) * _FIRST
    bits = mixed.to(tl.uint64)
    return (bits ^ (bits >> 31)).to(tl.int64)
