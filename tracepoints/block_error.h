// SPDX-License-Identifier: MIT
// What a bridge of block events makes of a record when it takes it out, whoever it passes it on to.
#pragma once
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>

#include "block_event.h"

// blk_status_to_errno() of Linux 5.16 and later, for the codes that have kept their number; older kernels give the
// errno.
static int32_t error_of(const struct block_event *e) {
    static const int32_t codes[] = {0,        -EOPNOTSUPP, -ETIMEDOUT, -ENOSPC, -ENOLINK, -EREMOTEIO, -EBADE,
                                    -ENODATA, -EILSEQ,     -ENOMEM,    -EIO,    -EREMCHG, -EAGAIN,    -EBUSY};
    if (e->error <= 0) return e->error;
    return (size_t)e->error < sizeof(codes) / sizeof(codes[0]) ? codes[e->error] : -EIO;
}
