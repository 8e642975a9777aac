"""Connections that fail: downloads, logins and servers are not taken for the processes of a training run, nor these for them.

The wording is that of the libraries and tools; names and paths are shortened."""

from __future__ import annotations

import pytest

from tests.explanation.explaining import cause, explained

LIB = "/opt/conda/lib/python3.10/"
SITE = LIB + "site-packages/"
DISTRIBUTED = SITE + "torch/distributed/"
REQUESTS = SITE + "requests/adapters.py"
DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"


def raised(exception: str, *files: str) -> str:
    frames = "".join(f'  File "{file}", line {n}, in f\n    g()\n' for n, file in enumerate(files, 1))
    return f"Traceback (most recent call last):\n{frames}{exception}\n"


NO_NAME = "[Errno -2] Name or service not known"
POOL = "HTTPSConnectionPool(host='huggingface.co', port=443): "

# what happened -> the rule, the log
ORDINARY = {
    "a data set of torchvision without a network": (
        "any.download",
        raised(
            f"socket.gaierror: {NO_NAME}",
            LIB + "urllib/request.py",
            LIB + "http/client.py",
            LIB + "socket.py",
        )
        + DURING
        + raised(
            f"urllib.error.URLError: <urlopen error {NO_NAME}>",
            "main.py",
            SITE + "torchvision/datasets/cifar.py",
        ),
    ),
    "MNIST": (
        "any.download",
        raised(
            "RuntimeError: Error downloading train-images-idx3-ubyte.gz:",
            "main.py",
            SITE + "torchvision/datasets/mnist.py",
        )
        + f"Tried https://ossci-datasets.s3.amazonaws.com/mnist/, got:\n<urlopen error {NO_NAME}>\n",
    ),
    "urllib, timeout": (
        "any.download",
        "urllib.error.URLError: <urlopen error [Errno 110] Connection timed out>\n",
    ),
    "urllib, refused": (
        "any.download",
        "urllib.error.URLError: <urlopen error [Errno 111] Connection refused>\n",
    ),
    "urllib, certificate": (
        "any.certificate",
        "urllib.error.URLError: <urlopen error [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed (_ssl.c:1007)>\n",
    ),
    "an address that is gone": ("any.http-status", "urllib.error.HTTPError: HTTP Error 404: Not Found\n"),
    "no data set": (
        "any.dataset-missing",
        "RuntimeError: Dataset not found or corrupted. You can use download=True to download it\n",
    ),
    "requests, name": (
        "any.hub-unreachable",
        raised(
            f"requests.exceptions.ConnectionError: {POOL}Max retries exceeded with url: /x (Caused by NewConnectionError("
            f"'<urllib3.connection.HTTPSConnection object at 0x7f>: Failed to establish a new connection: {NO_NAME}'))",
            *("main.py", REQUESTS),
        ),
    ),
    "requests, slow": (
        "any.hub-unreachable",
        raised(
            f"requests.exceptions.ReadTimeout: {POOL}Read timed out. (read timeout=10)", "main.py", REQUESTS
        ),
    ),
    "requests, reset": (
        "any.download",
        raised(
            "requests.exceptions.ConnectionError: ('Connection aborted.', ConnectionResetError(104, 'Connection reset by peer'))",
            *("main.py", REQUESTS),
        ),
    ),
    "requests, proxy": (
        "any.proxy",
        raised(
            f"requests.exceptions.ProxyError: {POOL}Max retries exceeded with url: / (Caused by ProxyError('Cannot connect to "
            "proxy.', NewConnectionError('Failed to establish a new connection: [Errno 111] Connection refused')))",
            *("main.py", REQUESTS),
        ),
    ),
    "httpx": ("any.download", raised(f"httpx.ConnectError: {NO_NAME}", "main.py", SITE + "httpx/_client.py")),
    "data sets of the hub": (
        "any.hub-unreachable",
        raised(
            "ConnectionError: Couldn't reach 'imdb' on the Hub (ConnectTimeout)",
            "main.py",
            SITE + "datasets/load.py",
        ),
    ),
    "a socket under http": (
        "any.download-socket",
        raised(f"socket.gaierror: {NO_NAME}", "main.py", LIB + "http/client.py"),
    ),
    "a reset under http": (
        "any.download-socket",
        raised(
            "ConnectionResetError: [Errno 104] Connection reset by peer",
            "main.py",
            LIB + "http/client.py",
            LIB + "ssl.py",
        ),
    ),
    "a read that lasts too long": (
        "any.download-socket",
        raised(
            "TimeoutError: The read operation timed out", "main.py", LIB + "urllib/request.py", LIB + "ssl.py"
        ),
    ),
    "the server hung up": (
        "any.download",
        "http.client.RemoteDisconnected: Remote end closed connection without response\n",
    ),
    "wget": (
        "any.download-tool",
        "Resolving download.pytorch.org... failed: Name or service not known.\n"
        "wget: unable to resolve host address 'download.pytorch.org'\n",
    ),
    "curl": (
        "any.download-tool",
        "curl: (7) Failed to connect to github.com port 443: Connection timed out\n",
    ),
    "curl, late": ("any.download-tool", "curl: (28) Connection timed out after 300523 milliseconds\n"),
    "git": (
        "any.download-tool",
        "fatal: unable to access 'https://github.com/a/b.git/': Could not resolve host: github.com\n",
    ),
    "git, cut off": (
        "any.download-tool",
        "error: RPC failed; curl 56 GnuTLS recv error (-54): Error in the pull function.\n"
        "fatal: the remote end hung up unexpectedly\nfatal: early EOF\n",
    ),
    "git by ssh": (
        "any.login",
        "ssh: Could not resolve hostname gitee.com: Name or service not known\nfatal: Could not read from remote repository.\n",
    ),
    "ssh": ("any.login", "ssh: connect to host node2 port 22: Connection refused\n"),
    "ssh, reset": ("any.login", "kex_exchange_identification: read: Connection reset by peer\n"),
    "ssh, broken": ("any.login", "client_loop: send disconnect: Broken pipe\n"),
    "ssh, key": ("any.login", "node2: Permission denied (publickey,password).\n"),
    "pip without a network": (
        "any.no-distribution",
        "WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError('<pip._vendor.urllib3."
        f"connection.HTTPSConnection object at 0x7f>: Failed to establish a new connection: {NO_NAME}')': /simple/torch/\n"
        "ERROR: Could not find a version that satisfies the requirement torch (from versions: none)\n"
        "ERROR: No matching distribution found for torch\n",
    ),
    "apt": (
        "any.download-tool",
        "  Temporary failure resolving 'archive.ubuntu.com'\nE: Unable to fetch some archives\n",
    ),
    "conda": (
        "any.download",
        "CondaHTTPError: HTTP 000 CONNECTION FAILED for url <https://repo.anaconda.com/pkgs/main>\n",
    ),
    "a database": (
        "any.connection-failed",
        f"pymysql.err.OperationalError: (2003, \"Can't connect to MySQL server on 'db' ({NO_NAME})\")\n",
    ),
    "a reader that has gone": (
        "any.connection-broken",
        raised("BrokenPipeError: [Errno 32] Broken pipe", "main.py"),
    ),
    "a name without more": ("any.connection-failed", f"socket.gaierror: {NO_NAME}\n"),
}

OF_A_RUN = {
    "the first node's name": (
        "any.host-not-found",
        "[W socket.cpp:601] [c10d] The IPv4 network addresses of (node1, 29500) cannot be retrieved (gai error: -2 - Name or "
        "service not known).\n"
        + raised(
            "torch.distributed.DistNetworkError: The client socket has failed to connect to any network address of (node1, "
            "29500). The client socket has failed to connect to node1:29500 (errno: -2 - Name or service not known).",
            *("main.py", DISTRIBUTED + "distributed_c10d.py"),
        ),
    ),
    "its name, in the launcher": (
        "any.rendezvous-host",
        raised(
            f"socket.gaierror: {NO_NAME}",
            DISTRIBUTED + "elastic/rendezvous/c10d_rendezvous_backend.py",
            LIB + "socket.py",
        ),
    ),
    "it does not answer": (
        "any.connect-timed-out",
        raised("RuntimeError: connect() timed out.", "main.py", DISTRIBUTED + "rendezvous.py"),
    ),
    "it does not answer, later PyTorch": (
        "any.connect-timed-out",
        "TimeoutError: The client socket has timed out after 1800s while trying to connect to (10.0.0.1, 29500).\n",
    ),
    "it refuses": (
        "any.rendezvous-timeout",
        raised(
            "ConnectionRefusedError: [Errno 111] Connection refused", "main.py", DISTRIBUTED + "rendezvous.py"
        ),
    ),
    "the store's process ended": (
        "any.nccl-remote",
        "RuntimeError: [1] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key "
        "'0', but store->get('0') got error: Connection reset by peer\n",
    ),
    "another process ended": (
        "any.peer-ended",
        raised("RuntimeError: Connection reset by peer", "main.py", DISTRIBUTED + "distributed_c10d.py"),
    ),
    "gloo": (
        "any.nccl-remote",
        "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.1.1]:21443\n",
    ),
    "NCCL over the docker bridge": (
        "any.nccl-docker",
        "node1:77:77 [0] NCCL INFO NET/IB : No device found.\n"
        "node1:77:102 [0] misc/socket.cc:483 NCCL WARN socketStartConnect: Connect to 172.17.0.2<48213> failed : Connection refused\n"
        "node1:77:102 [0] NCCL INFO misc/socket.cc:564 -> 2\n"
        + raised(
            "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1691, "
            "unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version 2.19.3",
            *("main.py", DISTRIBUTED + "distributed_c10d.py"),
        )
        + "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.\n",
    ),
}


@pytest.mark.parametrize("what", ORDINARY)
def test_an_ordinary_connection(what: str) -> None:
    rule, log = ORDINARY[what]
    assert cause(log) == rule


@pytest.mark.parametrize("what", OF_A_RUN)
def test_a_connection_of_a_run(what: str) -> None:
    rule, log = OF_A_RUN[what]
    assert cause(log) == rule


def test_the_program_s_own_line_is_named() -> None:
    found = explained(ORDINARY["a data set of torchvision without a network"][1]).cause
    assert found is not None and found.frame is not None and found.frame.file == "main.py"
