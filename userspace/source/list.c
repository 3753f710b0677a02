// SPDX-License-Identifier: Apache-2.0
#include <stddef.h>

#include "source/source.h"

const struct source_ops *const source_list[] = {&source_bpf, &source_kmod, &source_perf, NULL};
