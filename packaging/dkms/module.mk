# SPDX-License-Identifier: Apache-2.0
# The kernel module without a package. KDIR is a kernel's build directory.
KVER ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KVER)/build

.PHONY: kmod dkms-install dkms-remove
kmod:
	@KVER=$(KVER) packaging/dkms/module.sh build $(VERSION) $(KDIR) $(BUILD)/kmod
dkms-install:
	@KVER=$(KVER) packaging/dkms/module.sh install $(VERSION)
dkms-remove:
	@KVER=$(KVER) packaging/dkms/module.sh remove $(VERSION)
