"""What HCCL refuses at once, by name. One rank is enough."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import numpy as np

from tests.emulate.collectives.checks import MOVED, REDUCED, Group
from tests.emulate.collectives.hccl import NOT_SUPPORT, PARA, PTR, ROOT_INFO_BYTES, TYPES, raises

FLOAT32 = TYPES["float32"]
DATA = np.ones(8, np.float32)


def check_types_of_reductions(group: Group) -> None:
    """The documented ones of this product, and no others."""
    for type_ in TYPES:
        for function in ("HcclAllReduce", "HcclReduceScatter"):
            arguments = (DATA, np.zeros_like(DATA), 1, TYPES[type_], 0)
            if type_ in REDUCED:
                group.communicator.call(function, *arguments)
            else:
                with raises(
                    NOT_SUPPORT, "EI0003", function, f"Value {type_} for parameter dataType", "bfloat16"
                ):
                    group.communicator.call(function, *arguments)


def check_types_that_are_moved(group: Group) -> None:
    for type_ in TYPES:
        arguments = (DATA, np.zeros_like(DATA), 1, TYPES[type_])
        if type_ in MOVED:
            group.communicator.call("HcclAllGather", *arguments)
        else:
            with raises(NOT_SUPPORT, "EI0003", "HcclAllGather", f"Value {type_} for parameter dataType"):
                group.communicator.call("HcclAllGather", *arguments)


def check_types_of_products(group: Group) -> None:
    for type_ in REDUCED:
        if type_ in ("int16", "bfloat16"):
            with raises(NOT_SUPPORT, "EI0003", f"Value {type_} for parameter dataType", "prod"):
                group.communicator.call("HcclAllReduce", DATA, DATA, 1, TYPES[type_], 1)
        else:
            group.communicator.call("HcclAllReduce", DATA, DATA, 1, TYPES[type_], 1)
    with raises(NOT_SUPPORT, "HcclReduceOp(4)"):
        group.communicator.call("HcclAllReduce", DATA, DATA, 1, FLOAT32, 4)


def check_pointers(group: Group) -> None:
    with raises(PTR, "EI0003", "HcclAllReduce", "nullptr", "sendBuf"):
        group.communicator.call("HcclAllReduce", None, DATA, 1, FLOAT32, 0)
    with raises(PTR, "EI0003", "HcclBroadcast", "nullptr", "buf"):
        group.communicator.call("HcclBroadcast", None, 1, FLOAT32, 0)
    with raises(PTR, "EI0003", "HcclGetRootInfo"):
        group.libraries.hccl("HcclGetRootInfo", None)
    with raises(PTR, "EI0003", "sendCounts"):
        group.communicator.call("HcclAlltoAllV", DATA, None, None, FLOAT32, None, None, None, FLOAT32)


def check_ranks(group: Group) -> None:
    with raises(PARA, "EI0003", "Value 3 for parameter root"):
        group.communicator.call("HcclBroadcast", DATA, 1, FLOAT32, 3)
    with raises(PARA, "EI0003", "destRank"):
        group.communicator.send(DATA, 1)
    with raises(PARA, "EI0003", "srcRank"):
        group.communicator.receive(DATA, 9)


def check_same_buffer(group: Group) -> None:
    with raises(PARA, "EI0003", "HcclAlltoAll"):
        group.communicator.call("HcclAlltoAll", DATA, 1, FLOAT32, DATA, 1, FLOAT32)


def check_communicator_that_is_none(group: Group) -> None:
    other = group.libraries.communicator(group.libraries.root_info(), 1, 0)
    other.destroy()
    for call in (other.destroy, other.barrier, other.name):
        with raises(PARA, "EI0003", "comm"):
            call()
    with raises(PTR, "EI0003", "comm"):
        group.libraries.hccl("HcclBarrier", None, group.communicator.stream.handle)


def check_names(group: Group) -> None:
    other = group.libraries.communicator(group.libraries.root_info(), 1, 0, name="mine")
    assert other.name() == "mine"
    handle = ctypes.c_void_p()
    group.libraries.hccl("HcclCommGetHandleWithName", b"mine", ctypes.byref(handle))
    assert handle.value == other.handle.value
    other.destroy()


def check_config_that_was_not_initialized(group: Group) -> None:
    info = ctypes.create_string_buffer(group.libraries.root_info(), ROOT_INFO_BYTES)
    config = (ctypes.c_char * 4096)()
    handle = ctypes.c_void_p()
    with raises(PARA, "EI0003", "HcclCommConfigInit"):
        group.libraries.hccl("HcclCommInitRootInfoConfig", 1, info, 0, config, ctypes.byref(handle))


def check_rank_tables(group: Group) -> None:
    with raises(PARA, "EI0004", "/nowhere/table.json"):
        group.libraries.communicators_of_table(Path("/nowhere/table.json"), 0)
    table = group.folder / "gap.json"
    table.write_text('[{"rank_id": "0"}, {"rank_id": "2"}]')
    with raises(PARA, "EI0004", "without a gap"):
        group.libraries.communicators_of_table(table, 0)


def check_variables(group: Group) -> None:
    info = group.libraries.root_info()
    for variable, value in (("HCCL_CONNECT_TIMEOUT", "119"), ("HCCL_EXEC_TIMEOUT", "soon")):
        os.environ[variable] = value
        with raises(PARA, "EI0001", f"Value {value} for environment variable {variable} is invalid"):
            group.libraries.communicator(info, 1, 0)
        del os.environ[variable]
    group.libraries.communicator(info, 1, 0).destroy()


def check_what_is_not_emulated(group: Group) -> None:
    for name in ("HcclCommRegister", "HcclCommExchangeMem", "HcclCommWorkingDevNicSet"):
        with raises(NOT_SUPPORT, f"{name} is not part of the emulated CANN"):
            group.libraries.hccl(name)


def check_result_names(group: Group) -> None:
    names = {0: "no error", PARA: "parameter error", 9: "timeout", 21: "error cqe", 24: "out of memory"}
    assert {code: group.libraries.error_string(code) for code in names} == names
    assert group.libraries.error_string(99) == "unknown error"


def check_group_that_did_not_begin(group: Group) -> None:
    with raises(PARA, "HcclGroupStart"):
        group.libraries.hccl("HcclGroupEnd")


def check_devices_of_one_process(group: Group) -> None:
    """One process, several devices: HcclCommInitAll, and communicators that are made in a group."""
    with raises(PARA, "HcclCommInitAll"):
        group.libraries.communicators_of_devices([1, 1])
    ones = group.libraries.communicators_of_devices([0, 1, 2])
    data = [np.full(4, rank, np.float32) for rank in range(3)]
    for one, own in zip(ones, data, strict=True):
        one.all_reduce(own, own, "float32", stream=one.stream)
    for one, own in zip(ones, data, strict=True):
        one.stream.wait()
        assert (own == 3).all()
        one.destroy()


def check_communicators_made_in_a_group(group: Group) -> None:
    info = ctypes.create_string_buffer(group.libraries.root_info(), ROOT_INFO_BYTES)
    handles = [ctypes.c_void_p() for _ in range(3)]
    group.libraries.hccl("HcclGroupStart")
    for rank, handle in enumerate(handles):
        group.libraries.hccl("HcclCommInitRootInfo", 3, info, rank, ctypes.byref(handle))
        assert not handle.value
    group.libraries.hccl("HcclGroupEnd")
    streams = [group.libraries.stream() for _ in handles]
    for handle, stream in zip(handles, streams, strict=True):
        group.libraries.hccl("HcclBarrier", handle, stream.handle)
    for handle, stream in zip(handles, streams, strict=True):
        stream.wait()
        group.libraries.hccl("HcclCommDestroy", handle)
