# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# A Ceph cluster for measurements, without systemd: one monitor and one OSD, BlueStore on a loop device or memstore, as
# root. To be sourced; `store` says which.
#
#   cluster_begin             directory, configuration, loop device, monitor; needs `say`, `fail` and descriptor 9 for
#                             messages
#   osd_start [NAME=VALUE...] the OSD, with these in its environment; osd_stop ends it
#   pool_make                 the pool "bench", one replica
#   cluster_end               ends and removes everything; may be called at any time, and again
#
# Everything that belongs to it is in $cluster, or dies with this shell: the daemons by PR_SET_PDEATHSIG, the loop
# device with its last user, its image has no name any more. Nothing in /etc/ceph, /var/lib/ceph or /run/ceph is read or
# written.

cluster_root=${OPLINE_CEPH_DIR:-/var/tmp}
image_bytes=$((8 << 30)) # sparse; a run of the example writes some hundred MiB
cluster=
mon_pid=
osd_pid=
osd_log=
loop=

# Directories of runs that were killed: what was in use has gone with them.
cluster_sweep() {
    local left
    for left in "$cluster_root"/opline-ceph.*/; do
        [[ -f $left/owner && ! -d /proc/$(<"$left/owner") ]] && rm -rf "$left" &&
            say "removed what a killed run left: $left"
    done
    return 0
}

free_port() {
    local port
    for port in {13300..13399}; do
        (exec 7<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
    return 1
}

# A daemon in a session of its own: Ctrl-C is for this shell to handle. It dies when this shell does.
daemon() {
    local log=$1
    shift
    setsid setpriv --pdeathsig KILL -- "$@" >>"$log" 2>&1 8<&- 9>&- &
}

cluster_begin() {
    local port image
    cluster_sweep
    cluster=$(mktemp -d "$cluster_root/opline-ceph.XXXXXX")
    echo $$ >"$cluster/owner"
    mkdir "$cluster"/{mon,osd,log}
    unset CEPH_ARGS CEPH_KEYRING
    export CEPH_CONF=$cluster/ceph.conf

    image=$cluster/image
    truncate -s "$image_bytes" "$image"
    loop=$(losetup --find --show --direct-io=on "$image") ||
        fail "no loop device: is the module loaded, are there free ones (losetup -f)?"
    exec 8<>"$loop" # keeps it
    losetup -d "$loop" # takes effect when the last user closes it
    rm -f "$image"
    [[ $(<"/sys/block/${loop##*/}/loop/dio") == 1 ]] ||
        say "note: no direct I/O below $loop, its file system does not do that"
    ln -s "$loop" "$cluster/osd/block"

    port=$(free_port) || fail "no free port for the monitor"
    fsid=$(</proc/sys/kernel/random/uuid)
    cat >"$CEPH_CONF" <<-CONF
		[global]
		fsid = $fsid
		mon host = [v2:127.0.0.1:$port]
		auth cluster required = none
		auth service required = none
		auth client required = none
		public addr = 127.0.0.1
		cluster addr = 127.0.0.1
		ms bind msgr1 = false
		osd pool default size = 1
		osd pool default min size = 1
		mon allow pool size one = true
		osd crush chooseleaf type = 0
		run dir = $cluster
		admin socket = $cluster/\$name.\$pid.asok
		log file = $cluster/log/\$name.log
		crash dir = $cluster/log
		keyring = $cluster/keyring
		[mon]
		mon data = $cluster/mon
		mon data avail warn = 1
		mon data avail crit = 0
		[osd]
		osd data = $cluster/osd
		osd objectstore = ${store:-bluestore}
		osd memory target = 939524096
		memstore device bytes = 4294967296
		osd fast shutdown = $([[ ${store:-bluestore} == bluestore ]] && echo true || echo false)
		bluestore debug enforce settings = ssd
		osd op history size = 20000
		osd op history duration = 600
		[client]
		admin socket =
		log file =
	CONF
    say "monitor at 127.0.0.1:$port, files in $cluster, $loop of $((image_bytes >> 30)) GiB (sparse)"
    monmaptool --create --fsid "$fsid" --addv a "[v2:127.0.0.1:$port]" "$cluster/monmap" \
        >"$cluster/log/monmaptool" 2>&1 || fail_log monmaptool
    ceph-mon --mkfs -i a --monmap "$cluster/monmap" >"$cluster/log/mon.mkfs" 2>&1 || fail_log mon.mkfs
    daemon "$cluster/log/mon.out" ceph-mon -f -i a
    mon_pid=$!
    ceph_ready mon "$mon_pid" ceph --connect-timeout 5 mon stat

    local uuid
    uuid=$(</proc/sys/kernel/random/uuid)
    ceph osd new "$uuid" >"$cluster/log/osd.new" 2>&1 || fail_log osd.new
    ceph-osd --mkfs -i 0 --osd-uuid "$uuid" >"$cluster/log/osd.mkfs" 2>&1 || fail_log osd.mkfs
    ceph osd crush add osd.0 1 root=default >"$cluster/log/crush" 2>&1 || fail_log crush
}

# The last lines of a step's output, and the end.
fail_log() {
    tail -n 15 "$cluster/log/$1" >&9
    fail "$1 failed: see the lines above"
}

# ceph_ready NAME PID COMMAND...: until the command succeeds; at most 60 s, and no longer than the daemon lives.
ceph_ready() {
    local name=$1 pid=$2 until=$((SECONDS + 60))
    shift 2
    until "$@" >/dev/null 2>&1; do
        [[ -d /proc/$pid ]] || fail_log "$name.out"
        ((SECONDS < until)) || fail "$name is not ready after 60 s; its log ends: $(tail -n 3 "$cluster/log/$name.out")"
        sleep 0.2
    done
}

# What the OSD's admin socket says: admin COMMAND...
admin() { ceph --admin-daemon "$cluster/osd.0.$osd_pid.asok" "$@"; }

osd_is_active() { admin status | grep -q '"state": "active"'; }

osd_start() {
    daemon "$cluster/log/osd.out" env "$@" ceph-osd -f -i 0
    osd_pid=$!
    ceph_ready osd "$osd_pid" osd_is_active
}

osd_stop() { end_daemon "$osd_pid"; osd_pid=; }

end_daemon() {
    local pid=$1 until=$((SECONDS + 20))
    [[ -n $pid ]] || return 0
    kill -TERM "$pid" 2>/dev/null || true
    while [[ -d /proc/$pid ]] && ((SECONDS < until)); do sleep 0.05; done
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
}

pool_make() {
    ceph osd pool create bench 16 >"$cluster/log/pool" 2>&1 || fail_log pool
    ceph osd pool application enable bench bench >>"$cluster/log/pool" 2>&1 || fail_log pool
    timeout 60 rados -p bench put ready "$CEPH_CONF" >>"$cluster/log/pool" 2>&1 || fail_log pool
}

cluster_end() {
    osd_stop
    end_daemon "$mon_pid"
    mon_pid=
    exec 8<&-
    if [[ -n $cluster ]]; then
        rm -rf "$cluster"
        cluster=
    fi
}
