"""Error rules of connections: downloads, logins and servers, told apart from those of the processes of a training run."""

from __future__ import annotations

from vendor_data.error_rule import GUIDE, PYTORCH, Rule

LIBRARIES = "urllib, requests, httpx and urllib3, wording of their exceptions"
TOOLS = "wget, curl, git, OpenSSH, pip, apt and conda, wording of their messages"
HUB = "huggingface_hub, transformers and safetensors, wording of their exceptions"
SYSTEM = "Linux, wording of its errors"
TORCHVISION = "pytorch/vision, wording of its messages"

_UNKNOWN_NAME = (
    r"Name or service not known|Temporary failure in name resolution|No address associated with hostname"
)
_UNREACHABLE = r"Connection timed out|Connection refused|No route to host|Network is unreachable"
_BROKEN = r"Connection reset by peer|Broken pipe"
# Files of libraries that a download goes through, and of PyTorch's own part for several processes.
_DOWNLOADERS = r"(?:^|[/\\])(?:urllib|http|requests|urllib3|httpx|httpcore|aiohttp|huggingface_hub|fsspec|botocore|pip)[/\\]"
_DISTRIBUTED = r"(?:^|[/\\])torch[/\\]distributed[/\\]"

_NO_MASTER = (
    "distributed",
    "the address of the first node (MASTER_ADDR) can't be resolved",
    "主节点地址（MASTER_ADDR）无法解析",
    "set MASTER_ADDR to the first node's IP address, the same on all nodes; on one machine to its own",
    "所有节点的 MASTER_ADDR 均设置为主节点 IP；单机时设置为本机 IP",
)
_NO_ANSWER = (
    "distributed",
    "a process did not reach the others in time: a firewall blocks the port, or the first node is not running yet",
    "进程未能按时连接其他进程：防火墙拦截了端口，或主节点尚未启动",
    "open the port (MASTER_PORT, and those of the collective library) in the firewall; start all nodes together; check "
    "MASTER_ADDR",
    "在防火墙中开放端口（MASTER_PORT 与集合通信库的端口）；同时启动各节点；检查 MASTER_ADDR",
)
_PEER_ENDED = (
    "distributed",
    "another process has ended, so the connection to it broke",
    "对端进程已退出，连接中断",
    "look for the error of the process that ended first; if there is none, for its exit by a signal (out of memory)",
    "查找最早退出的进程的错误；若没有，检查其是否被信号终止（内存不足）",
)
_DOWNLOAD = (
    "network",
    "a download failed: the server can't be reached from here (no network, no DNS, a proxy or a firewall), or it broke off",
    "下载失败：此处无法连接服务器（没有网络、没有 DNS、需要代理或被防火墙拦截），或连接中途断开",
    "download the file on a machine with a network, copy it to where the program looks for it, and leave out download=True; "
    "or set HTTPS_PROXY, or use a mirror",
    "在有网络的机器上下载该文件，拷贝到程序查找的位置，并去掉 download=True；或设置 HTTPS_PROXY，或使用镜像",
)

NETWORK = (
    Rule(
        "host-not-found",
        rf"[Hh]ost not found(?:[:.]|$)|gai error|client socket .{{0,200}}(?:{_UNKNOWN_NAME})|c10d.{{0,200}}(?:{_UNKNOWN_NAME})",
        *_NO_MASTER,
        GUIDE,
    ),
    Rule("rendezvous-host", _UNKNOWN_NAME, *_NO_MASTER, PYTORCH, frames=_DISTRIBUTED),
    Rule(
        "connect-timed-out",
        r"connect\(\) timed out|client socket has timed out|client socket .{0,200}Connection timed out|"
        r"timed out after \d+ms when waiting to connect",
        *_NO_ANSWER,
        GUIDE,
    ),
    Rule("rendezvous-timeout", _UNREACHABLE, *_NO_ANSWER, PYTORCH, frames=_DISTRIBUTED),
    Rule(
        "nccl-remote",
        r"ncclRemoteError|remote process exited or there was a network error|NCCL communicator was aborted|"
        rf"Connection closed by (?:remote )?peer|(?:store|NCCL|HCCL|gloo|c10d|TCPStore).{{0,300}}(?:{_BROKEN})",
        *_PEER_ENDED,
        "NVIDIA, wording of the CUDA runtime, cuDNN and NCCL",
        2,
        "consequence",
    ),
    Rule("peer-ended", _BROKEN, *_PEER_ENDED, PYTORCH, 2, "consequence", frames=_DISTRIBUTED),
    Rule(
        "gloo-connect",
        r"gloo.{0,200} connect \[(?P<address>[\w.:]+)\]:\d+: ",
        "distributed",
        "a process could not connect to another one at {address}: an address that only that machine itself knows (127.0.1.1 of "
        "/etc/hosts), or a firewall",
        "进程无法连接 {address} 上的其他进程：该地址仅本机有效（/etc/hosts 中的 127.0.1.1），或被防火墙拦截",
        "name the network interface between the machines: GLOO_SOCKET_IFNAME=eth0 (`ip addr` lists them); take the host's own "
        "name off 127.0.1.1 in /etc/hosts",
        "指定机器之间的网卡：GLOO_SOCKET_IFNAME=eth0（用 `ip addr` 查看）；在 /etc/hosts 中去掉本机名的 127.0.1.1 条目",
        PYTORCH,
    ),
    Rule(
        "certificate",
        r"CERTIFICATE_VERIFY_FAILED|certificate verif(?:y|ication) failed",
        "network",
        "the server's certificate is not trusted here: a proxy of the organisation that opens connections, old CA "
        "certificates, or a wrong clock",
        "此处不信任服务器证书：组织的代理会解开连接、CA 证书过旧，或系统时间错误",
        "name the organisation's CA file in SSL_CERT_FILE and REQUESTS_CA_BUNDLE (pip: --cert); update the ca-certificates package",
        "用 SSL_CERT_FILE 与 REQUESTS_CA_BUNDLE 指定组织的 CA 文件（pip：--cert）；更新 ca-certificates 包",
        LIBRARIES,
    ),
    Rule(
        "proxy",
        r"Cannot connect to proxy|Tunnel connection failed|407 Proxy Authentication",
        "network",
        "the proxy that the environment names can't be reached, or refuses",
        "无法连接环境变量指定的代理，或代理拒绝",
        "check HTTP_PROXY and HTTPS_PROXY, or unset them; NO_PROXY for addresses inside",
        "检查 HTTP_PROXY 与 HTTPS_PROXY，或取消设置；内部地址使用 NO_PROXY",
        LIBRARIES,
    ),
    Rule(
        "hub-unreachable",
        r"We couldn't connect to 'https://|LocalEntryNotFoundError|OfflineModeIsEnabled|huggingface\.co\b.*(?:Max retries|timed out)|"
        r"Cannot find the requested files in the (?:disk|local) cache|Couldn't reach .{1,200} on the Hub",
        "network",
        "a model or a data set is to be downloaded, and the server can't be reached from here",
        "需要下载模型或数据集，但无法连接服务器",
        "copy it here and give its path; or a mirror (HF_ENDPOINT), or a proxy; then HF_HUB_OFFLINE=1",
        "将其拷贝到本机并给出路径；或使用镜像（HF_ENDPOINT）或代理；之后设置 HF_HUB_OFFLINE=1",
        HUB,
    ),
    Rule(
        "http-status",
        r"HTTP Error (?P<status>[45]\d\d)\b|HTTP request sent, awaiting response\.\.\. (?P<answer>[45]\d\d)\b",
        "network",
        "the server refuses the download with HTTP status {status|answer}: the address is wrong or has moved (404), it is not "
        "public (401, 403), or the server is busy (429, 5xx)",
        "服务器以 HTTP 状态 {status|answer} 拒绝下载：地址错误或已变更（404）、需要授权（401、403），或服务器繁忙（429、5xx）",
        "open the address in a browser; newer versions of torchvision and of data set libraries have newer addresses; download it "
        "by hand and give its path",
        "在浏览器中打开该地址；较新版本的 torchvision 与数据集库使用新地址；或手动下载并给出路径",
        LIBRARIES,
    ),
    Rule(
        "download",
        r"URLError\b|<urlopen error|HTTPS?ConnectionPool\(|requests\.exceptions\.(?:ConnectionError|ConnectTimeout|ReadTimeout|"
        r"Timeout|ChunkedEncodingError)|\bhttp[xc]\w*\.(?:Connect|Read|RemoteProtocol|Pool)\w*(?:Error|Timeout)|"
        r"aiohttp\.client_exceptions\.\w+|http\.client\.(?:RemoteDisconnected|IncompleteRead)|Error downloading |CondaHTTPError",
        *_DOWNLOAD,
        LIBRARIES,
    ),
    Rule(
        "download-socket",
        rf"{_UNKNOWN_NAME}|{_UNREACHABLE}|{_BROKEN}|timed out|EOF occurred in violation of protocol",
        *_DOWNLOAD,
        LIBRARIES,
        2,
        frames=_DOWNLOADERS,
    ),
    Rule(
        "download-tool",
        r"unable to resolve host address|[Cc]ould not resolve host\b|\bcurl: \(\d+\)|RPC failed; curl|fatal: unable to access '|"
        r"the remote end hung up unexpectedly|Temporary failure resolving '|Unable to fetch some archives",
        *_DOWNLOAD,
        TOOLS,
    ),
    Rule(
        "download-attempt",
        r"^(?:Resolving|Connecting to) \S+\.\.\. failed: ",
        *_DOWNLOAD,
        TOOLS,
        effect="notice",
    ),
    Rule(
        "dataset-missing",
        r"Dataset not found or corrupted|File not found or corrupted",
        "files",
        "the data set is not in the folder that the program names, or its files are damaged",
        "程序指定的文件夹中没有数据集，或其文件已损坏",
        "check the path (a relative one counts from where the program was started) and remove what an interrupted download has "
        "left; download=True only on a machine with a network",
        "检查路径（相对路径以启动目录为准），并删除中断下载留下的文件；仅在有网络的机器上使用 download=True",
        TORCHVISION,
    ),
    Rule(
        "no-distribution",
        r"No matching distribution found for (?P<name>[^\s(]+)",
        "install",
        "pip finds no version of {name} that fits this Python and this system, or can't reach the index",
        "pip 找不到适合此 Python 与系统的 {name} 版本，或无法访问软件源",
        "look at `from versions:` in the line before: `none` means that the index has no wheel for this Python or can't be reached "
        "(--index-url, a proxy); else ask for one of those versions",
        "查看前一行的 `from versions:`：`none` 表示软件源没有适合此 Python 的 wheel 或无法访问（--index-url、代理）；否则改用所列版本",
        TOOLS,
    ),
    Rule(
        "login",
        r"ssh: (?:connect to host|Could not resolve hostname) (?P<host>[\w.-]+)|kex_exchange_identification: |"
        r"client_loop: send disconnect|Permission denied \(publickey|Host key verification failed",
        "network",
        "ssh can't log in to another machine: its name or address is wrong, it does not answer, or it does not take the key",
        "ssh 无法登录其他机器：名称或地址错误、没有应答，或不接受密钥",
        "try `ssh HOST true` from here; launchers that start other nodes by ssh (mpirun, deepspeed) need a key without a "
        "password, and the host's key in known_hosts",
        "在此处执行 `ssh HOST true`；通过 ssh 启动其他节点的启动器（mpirun、deepspeed）需要免密密钥，且 known_hosts 中有对方主机密钥",
        TOOLS,
    ),
    Rule(
        "connection-failed",
        rf"{_UNKNOWN_NAME}|{_UNREACHABLE}",
        "network",
        "a connection failed: the name or address is wrong, nothing answers there, or a firewall is in between",
        "连接失败：名称或地址错误、对方没有应答，或被防火墙拦截",
        "the line or the traceback says whom the program wanted to reach: a server for a download (network, proxy), a database "
        "(is it running?), or the first node of a run (MASTER_ADDR, MASTER_PORT)",
        "该行或调用栈说明程序要连接谁：下载服务器（网络、代理）、数据库（是否在运行），或主节点（MASTER_ADDR、MASTER_PORT）",
        SYSTEM,
        3,
    ),
    Rule(
        "connection-broken",
        _BROKEN,
        "network",
        "the other side of a connection or of a pipe has gone: another process, a server, or the reader of the output",
        "连接或管道的另一端已断开：其他进程、服务器，或输出的读取方",
        "the traceback says whose connection it is; with several processes look for the one that ended first (also by a signal)",
        "调用栈说明是谁的连接；多进程时查找最早退出的进程（包括被信号终止）",
        SYSTEM,
        3,
        "consequence",
    ),
)
