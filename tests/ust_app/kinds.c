/* SPDX-License-Identifier: MIT
 * Emits COUNT events kinds:all, the fields computed from their number, and a kinds:none after every seventh.
 *   usage: kinds COUNT
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "kinds_tp.h"
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int count = argc > 1 ? atoi(argv[1]) : 10;
    static const char *texts[] = {"", "a", "seven", "eight-888", "a longer text than eight"};
    uint16_t list[8] = {1, 2, 3, 0xffff, 5, 6, 7, 8};
    for (int n = 0; n < count; n++) {
        lttng_ust_tracepoint(kinds, all, n, texts[n % 5], list, (size_t)(n % 6));
        if (n % 7 == 0) lttng_ust_tracepoint(kinds, none, n);
        if (n % 50 == 0) usleep(200000);
    }
    return 0;
}
