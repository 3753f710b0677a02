#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# In the guest: the sampler's own test.
exec probe "$@"
