# SPDX-License-Identifier: MIT
"""Lines about Ceph in the help of commands."""

#: What people ask, and the commands that answer it.
QUESTIONS = (
    (
        "What made this Ceph write slow?",
        ("opline record -o ceph --model ceph --probes -- rados -p bench bench 10 write", "opline why ceph"),
    ),
)
#: By the command.
HELP = {
    "coverage": """\
It also takes that of rados bench (text, JSON), and a result folder of CBT (the
Ceph Benchmarking Tool): the outputs of all clients of one test.
""",
    "ops": """\
--style ceph-devel prints the lists of the ceph-devel mail "performance latency
analysis with LTTng": complete ops, every point (late points too), deltas in
whole microseconds. The deltas sum to the total, from the first state to the
last.
""",
}
EXAMPLES = {
    "coverage": "  opline coverage trace/ --model ceph --client bench.txt\n",
    "ops": "  opline ops trace/ --model ceph --style ceph-devel\n",
    "record": """\
  opline record --model ceph -- rados -p bench bench 10 write -b 4096   # preloads the shim
  opline record --model ceph --probes -- rados -p bench bench 10 write   # inside the OSD
""",
}
