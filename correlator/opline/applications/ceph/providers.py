# SPDX-License-Identifier: MIT
"""Providers of collectors: whose events each passes on, and which have events of their own."""

#: A thread with the shim writes `cephshim:EVENT`; the shim's collector passes the same event on as `cephring:EVENT`.
RELAYED = {"cephring": "cephshim"}
#: Hits of probes, with `ktime`, `tid`, `pid`, `comm` and `cpu` before their fields.
TIMED = ("cephprobe",)
