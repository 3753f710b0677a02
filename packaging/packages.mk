# SPDX-License-Identifier: Apache-2.0
# What an installation consists of, and the packages made from it. deb and rpm
# call the parts, so that each file has one place where it is listed.
DATADIR     ?= $(PREFIX)/share
# Beside SBINDIR: otprofd looks for its workers' program there.
LIBEXECDIR  ?= $(patsubst %/,%,$(dir $(SBINDIR)))/libexec
MANDIR      ?= $(DATADIR)/man
BASHDIR     ?= $(DATADIR)/bash-completion/completions
ZSHDIR      ?= $(DATADIR)/zsh/site-functions
FISHDIR     ?= $(DATADIR)/fish/vendor_completions.d
EXAMPLEDIR  ?= $(DATADIR)/doc/otprof/examples
UNITDIR     ?= $(PREFIX)/lib/systemd/system
SYSUSERSDIR ?= $(PREFIX)/lib/sysusers.d
TMPFILESDIR ?= $(PREFIX)/lib/tmpfiles.d
# Of the Debian package; the rpm calls it release.
REVISION    ?= 1

MAN_PAGES  := $(sort $(wildcard packaging/man/*.[1-8]))
INSTALLED   = $(SBINDIR)/otprofd $(LIBEXECDIR)/otprof/otprof-worker $(BINDIR)/otprof $(UNITDIR)/otprofd.service $(SYSUSERSDIR)/otprof.conf \
	$(TMPFILESDIR)/otprof.conf $(BASHDIR)/otprof $(BASHDIR)/otprofd $(ZSHDIR)/_otprof $(FISHDIR)/otprof.fish \
	$(FISHDIR)/otprofd.fish $(EXAMPLEDIR)/cpu-quota.conf $(EXAMPLEDIR)/memory-max.conf \
	$(EXAMPLEDIR)/otel-collector.yaml $(EXAMPLEDIR)/pyroscope.yaml \
	$(foreach p,$(MAN_PAGES),$(MANDIR)/man$(subst .,,$(suffix $(p)))/$(notdir $(p)))

.PHONY: install-programs install-config install-man install-completions install-examples install-service uninstall-files deb rpm

install: install-programs install-config install-man install-completions install-examples install-service

install-programs: all
	install -D -m 755 $(BUILD)/otprofd $(DESTDIR)$(SBINDIR)/otprofd
	install -D -m 755 $(BUILD)/otprof-worker $(DESTDIR)$(LIBEXECDIR)/otprof/otprof-worker
	install -D -m 755 $(BUILD)/otprof $(DESTDIR)$(BINDIR)/otprof

# A configuration that is there is the operator's.
install-config:
	install -d -m 755 $(DESTDIR)$(SYSCONFDIR)/otprof.conf.d
	[ -e $(DESTDIR)$(SYSCONFDIR)/otprof.conf ] || \
		install -m 644 packaging/otprof.conf $(DESTDIR)$(SYSCONFDIR)/otprof.conf

install-man:
	for page in $(MAN_PAGES); do install -D -m 644 $$page $(DESTDIR)$(MANDIR)/man$${page##*.}/$${page##*/} || exit 1; done

install-completions:
	install -D -m 644 packaging/completions/otprof.bash $(DESTDIR)$(BASHDIR)/otprof
	ln -sf otprof $(DESTDIR)$(BASHDIR)/otprofd
	install -D -m 644 packaging/completions/_otprof $(DESTDIR)$(ZSHDIR)/_otprof
	install -D -m 644 -t $(DESTDIR)$(FISHDIR) packaging/completions/otprof.fish packaging/completions/otprofd.fish

install-examples:
	install -D -m 644 -t $(DESTDIR)$(EXAMPLEDIR) packaging/examples/*.conf packaging/examples/*.yaml

# The unit as a file of its own: debhelper wants to place it itself.
$(BUILD)/otprofd.service: packaging/systemd/otprofd.service.in
	@mkdir -p $(@D)
	sed -e 's|@SBINDIR@|$(SBINDIR)|' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|' $< > $@.tmp && mv $@.tmp $@

install-service: $(BUILD)/otprofd.service
	install -D -m 644 $(BUILD)/otprofd.service $(DESTDIR)$(UNITDIR)/otprofd.service
	install -D -m 644 packaging/systemd/otprof.sysusers $(DESTDIR)$(SYSUSERSDIR)/otprof.conf
	install -D -m 644 packaging/systemd/otprof.tmpfiles $(DESTDIR)$(TMPFILESDIR)/otprof.conf

uninstall-files: # the configuration stays
	rm -f $(INSTALLED:%=$(DESTDIR)%)

deb:
	packaging/deb/build.sh $(VERSION) $(REVISION) $(BUILD)/deb
rpm:
	packaging/rpm/build.sh $(VERSION) $(REVISION) $(BUILD)/rpm
