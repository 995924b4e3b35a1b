// SPDX-License-Identifier: MIT
// The provider `cephshim`, a library of its own: libopline-ceph-tp.so brings LTTng-UST with it, and is loaded only
// where Ceph's messenger is.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "one_write.h"

#include "cephshim_tp.h"
