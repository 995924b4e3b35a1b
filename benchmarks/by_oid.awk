# SPDX-License-Identifier: MIT
# Text to ops, as it is done by hand: babeltrace2's text, grouped by object name; mean and count per interval on standard output.
# Fields: [11:22:33.123456789] (+0.1) host bench:s00: { cpu_id = 0 }, { vpid … }, { op = 1, oid = "…", … }
{
    split(substr($1, 2), clock, /[:\]]/)
    ns = ((clock[1] * 60 + clock[2]) * 60) * 1000000000 + clock[3] * 1000000000
    at = index($0, "oid = \"")
    rest = substr($0, at + 7)
    oid = substr(rest, 1, index(rest, "\"") - 1)
    event = $4
    if (oid in last) {
        stage = last_event[oid] " -> " event
        sum[stage] += ns - last[oid]
        count[stage]++
    }
    if (event == "bench:s17:") {
        ops++
        delete last[oid]
        delete last_event[oid]
    } else {
        last[oid] = ns
        last_event[oid] = event
    }
}
END {
    for (stage in sum) printf "%s %d %.0f\n", stage, count[stage], sum[stage] / count[stage]
    print "ops", ops
}
