# SPDX-License-Identifier: MIT
"""What the BPF programs for positions in TCP streams (tracepoints/tcp.bpf.c) must know of the running kernel."""

from __future__ import annotations

from opline.capture.bpf.btf import Btf, all_known

PROGRAMS = ("tcp_sendmsg_locked", "sock_recv_length")  # since Linux 6.16 and 6.3


def definitions(btf: Btf) -> dict[str, int]:
    """Offsets for the programs; empty where the kernel lacks one of the tracepoints."""
    if any(btf.tracepoint(name) is None for name in PROGRAMS):
        return {}
    known = all_known(
        {
            "O_SOCK_FAMILY": btf.offset("sock", "__sk_common.skc_family"),
            "O_SOCK_PROTOCOL": btf.offset("sock", "sk_protocol"),
            "O_SOCK_LOCAL": btf.offset("sock", "__sk_common.skc_rcv_saddr"),
            "O_SOCK_PEER": btf.offset("sock", "__sk_common.skc_daddr"),
            "O_SOCK_PORT": btf.offset("sock", "__sk_common.skc_num"),
            "O_SOCK_PEER_PORT": btf.offset("sock", "__sk_common.skc_dport"),
            "O_TCP_WRITTEN": btf.offset("tcp_sock", "write_seq"),
            "O_TCP_COPIED": btf.offset("tcp_sock", "copied_seq"),
        }
    )
    if known is None:
        return {}
    # a kernel without IPv6 has no socket with such an address
    local6, peer6 = (btf.offset("sock", f"__sk_common.skc_v6_{name}") for name in ("rcv_saddr", "daddr"))
    read_at_once = [known[f"O_SOCK_{name}"] for name in ("FAMILY", "LOCAL", "PEER", "PORT", "PEER_PORT")]
    low = min(read_at_once) & ~7
    span = (max(read_at_once) + 8 - low) & ~7
    return {**known, "O_SOCK_LOCAL6": local6 or 0, "O_SOCK_PEER6": peer6 or 0, "SOCK_LOW": low, "SOCK_SPAN": span}
