# SPDX-License-Identifier: MIT
"""The table of hops: for each message between two hosts its op, and the message that answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import duckdb

    from opline.cluster.exchange import Exchange
    from opline.cluster.network import Network

#: (column, what it is); durations and times in ns of the reference's clock.
COLUMNS = (
    ("op_id", "The op; absent where no op passed the message's points."),
    ("parent_host", "Host that sent the request."),
    ("child_host", "Host that received it."),
    ("identity", "Of the request, as in messages."),
    ("send_point", "Where the request was sent."),
    ("receive_point", "Where it was received."),
    ("reply_point", "Where the answer was sent; absent where none is known, as all that is about it."),
    ("return_point", "Where the answer was received."),
    ("receive_tid", "Thread of receive_point."),
    ("return_tid", "Thread of return_point."),
    ("sent_ns", "Time of send_point."),
    ("received_ns", "Time of receive_point."),
    ("replied_ns", "Time of reply_point."),
    ("returned_ns", "Time of return_point."),
    ("request_ns", "received_ns - sent_ns, within bound_ns."),
    ("reply_ns", "returned_ns - replied_ns, within bound_ns."),
    ("both_ns", "request_ns + reply_ns: exact but for the clocks' rate."),
    ("bound_ns", "How far request_ns and reply_ns may be from the truth."),
    ("slack_ns", "From returned_ns to the answer that ended the op's wait: 0 is critical, less than 0 came too late."),
)

_PAIR = """
WITH m AS (
    SELECT *, row_number() OVER (PARTITION BY op_id, {key}, sender, receiver ORDER BY sent_ns) AS n FROM {of}
    WHERE op_id IS NOT NULL)
SELECT request.message AS request, min(reply.message) AS reply FROM m request JOIN m reply
ON request.op_id = reply.op_id AND request.sender = reply.receiver AND request.receiver = reply.sender
    AND {same} AND request.n = reply.n AND request.received_ns <= reply.sent_ns
GROUP BY request.message"""

# Requests of a host for one op are in flight together if one is sent before the others' answers are back. The times are
# of one clock, so the slack is exact.
_HOPS = """
WITH hop AS ({visits}),
turn AS (
    SELECT *, sent_ns > max(returned_ns) OVER (PARTITION BY op_id, parent_host ORDER BY sent_ns, message
                                               ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS begins
    FROM hop),
together AS (
    SELECT *, count(*) FILTER (begins) OVER (PARTITION BY op_id, parent_host ORDER BY sent_ns, message) AS turn
    FROM turn)
SELECT * EXCLUDE (message, begins, turn),
    CASE WHEN op_id IS NOT NULL
        THEN max(returned_ns) OVER (PARTITION BY op_id, parent_host, turn) - returned_ns END AS slack_ns
FROM together ORDER BY sent_ns, message"""

_VISITS = """
SELECT r.message, r.op_id, r.sender AS parent_host, r.receiver AS child_host, r.identity, r.send_point, r.receive_point,
    a.send_point AS reply_point, a.receive_point AS return_point,
    r.receive_tid, a.receive_tid AS return_tid,
    r.sent_ns, r.received_ns, a.sent_ns AS replied_ns, a.received_ns AS returned_ns,
    r.received_ns - r.sent_ns AS request_ns, a.received_ns - a.sent_ns AS reply_ns, request_ns + reply_ns AS both_ns,
    least(greatest(r.bound_ns, coalesce(a.bound_ns, 0)), coalesce(greatest(request_ns, reply_ns), r.bound_ns))
        AS bound_ns
FROM found r LEFT JOIN answers ON r.message = answers.request LEFT JOIN found a ON a.message = answers.reply
WHERE r.message NOT IN (SELECT reply FROM answers)"""


_TEXTS = ("sender", "receiver", "send_point", "receive_point")
_NUMBERS = ("send_tid", "receive_tid", "sent_ns", "received_ns", "bound_ns")
#: The columns of messages, and their types.
_MESSAGE = {**dict.fromkeys(_TEXTS, object), "identity": np.uint64, **dict.fromkeys(_NUMBERS, np.int64)}


def message_table(exchange: Exchange, network: Network) -> dict[str, np.ndarray]:
    """A row per message between two aligned hosts, on the reference's clock."""
    tables = []
    for (sender, receiver), pairs in exchange.between.items():
        if sender not in network.maps or receiver not in network.maps or not len(pairs):
            continue
        sent, received = exchange.times(sender, receiver)
        a, b = network.maps[sender], network.maps[receiver]
        out, back = exchange.messages[sender], exchange.messages[receiver]
        sent_ns, received_ns = a.at(sent), b.at(received)
        columns = {
            "sender": np.full(len(pairs), sender, dtype=object),
            "receiver": np.full(len(pairs), receiver, dtype=object),
            "identity": out.sends.identity[pairs.send],
            "send_point": np.array(out.points, dtype=object)[out.sends.point[pairs.send]],
            "receive_point": np.array(back.points, dtype=object)[back.receives.point[pairs.receive]],
            "send_tid": out.send_tids[pairs.send],
            "receive_tid": back.receive_tids[pairs.receive],
            "sent_ns": sent_ns,
            "received_ns": received_ns,
            "bound_ns": a.bound_at(sent_ns) + b.bound_at(received_ns),
        }
        tables.append(columns)
    empty = {name: np.zeros(0, kind) for name, kind in _MESSAGE.items()}
    return {
        name: np.concatenate([table[name].astype(kind, copy=False) for table in (empty, *tables)])
        for name, kind in _MESSAGE.items()
    }


def write_hops(messages: dict[str, np.ndarray], run: Path, out: Path, quorums: Mapping[str, int] | None = None) -> int:
    """Writes the table of hops of the joined run; gives the number of its rows. ``quorums``: how many answers an op
    waits for, by the point that receives one (opline.model.compile). Raises OSError.
    """
    import duckdb

    with duckdb.connect(config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}) as con:
        con.register("given", messages)
        typed = ", ".join(f"{name}::VARCHAR AS {name}" if name in _TEXTS else name for name in messages)
        con.execute(f"CREATE TABLE message AS SELECT row_number() OVER () AS message, {typed} FROM given")
        con.read_parquet(str(run / "transitions.parquet")).create_view("transitions")
        con.execute(f"CREATE TABLE found AS SELECT message.*, passed.op_id FROM message LEFT JOIN ({_OPS}) passed "
                    "USING (message)")  # fmt: skip
        _answers(con)
        con.execute(f"CREATE TABLE hops AS {_HOPS.format(visits=_VISITS)}")
        if quorums:
            _of_quorums(con, quorums)
        con.sql("SELECT * FROM hops ORDER BY rowid").write_parquet(str(out), compression="zstd")
        ((rows,),) = con.execute("SELECT count(*) FROM hops").fetchall()
    return int(rows)


def _of_quorums(con: duckdb.DuckDBPyConnection, quorums: Mapping[str, int]) -> None:
    """Slack against the answer that the op waited for, of requests of which it waits for some alone: less than 0 where
    an answer came later. Requests belong together if they are sent before that answer.
    """
    hops = con.execute(
        "SELECT op_id, parent_host, return_point, sent_ns, returned_ns FROM hops ORDER BY rowid"
    ).fetchall()
    groups: dict[tuple[int, str, str], list[int]] = {}
    for row, (op, host, point, *_) in enumerate(hops):
        if op is not None and point in quorums:
            groups.setdefault((op, host, point), []).append(row)
    slack: dict[int, int] = {}
    for (_, _, point), rows in groups.items():  # in order of the sends
        while rows:
            together = [rows[0]]
            for row in rows[1:]:
                ends_ns = sorted(hops[k][4] for k in together)
                if len(ends_ns) >= quorums[point] and hops[row][3] > ends_ns[quorums[point] - 1]:
                    break
                together.append(row)
            ends_ns = sorted(hops[k][4] for k in together)
            waited_ns = ends_ns[min(quorums[point], len(ends_ns)) - 1]
            for row in together:
                slack[row] = waited_ns - hops[row][4]
            rows = rows[len(together) :]
    con.register("given", {"row": np.array([*slack], np.int64), "slack_ns": np.array([*slack.values()], np.int64)})
    con.execute("UPDATE hops SET slack_ns = given.slack_ns FROM given WHERE hops.rowid = given.row")


_OPS = """
SELECT message, min(op_id) AS op_id FROM message JOIN transitions t
ON t.ts_ns = received_ns AND t.tid = receive_tid AND split_part(t.point, '#', 1) = receive_point
GROUP BY message"""


def _answers(con: duckdb.DuckDBPyConnection) -> None:
    """The answer of each request: of the same identity if there is one, else the next message back of the op."""
    same = _PAIR.format(key="identity", of="found", same="request.identity = reply.identity")
    con.execute(f"CREATE TABLE answers AS {same}")
    con.execute("DELETE FROM answers WHERE request IN (SELECT reply FROM answers)")
    rest = "(SELECT * FROM found WHERE message NOT IN (SELECT unnest([request, reply]) FROM answers))"
    con.execute(f"INSERT INTO answers {_PAIR.format(key='1', of=rest, same='true')}")
    con.execute("DELETE FROM answers WHERE request IN (SELECT reply FROM answers)")
