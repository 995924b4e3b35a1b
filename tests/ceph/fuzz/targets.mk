# SPDX-License-Identifier: MIT
# The shim's collector among the fuzz targets of correlator/native/Makefile, which includes this file.
fuzz_targets += rings
ceph := $(here)../../tracepoints/ceph/
ceph_fuzz := $(here)../../tests/ceph/fuzz/

$(BUILD)/tests/fuzz_rings: $(ceph_fuzz)fuzz_rings.c $(ceph_fuzz)fuzz_rings_pass.c $(ceph)msgr.c $(ceph)listener.c \
		$(wildcard $(ceph_fuzz)*.h $(ceph)*.[ch])
	@mkdir -p $(@D)
	$(CXX:clang++%=clang%) -x c -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -O2 -gline-tables-only $(SANITIZE) $(coverage) \
		-fsanitize=fuzzer -I$(ceph_fuzz) -I$(ceph) \
		$(filter %.c,$(wordlist 1,4,$^)) -o $@.$$PPID && mv $@.$$PPID $@
