# SPDX-License-Identifier: Apache-2.0
# perl.pl as a handler of a web server; a request takes as many seconds as its query says.
package Handler;

use Apache2::RequestRec ();

sub handler {
	my ($request) = @_;
	local @ARGV = ($request->args);
	local $0 = __FILE__ =~ s{Handler\.pm$}{perl.pl}r;
	do $0;
	return 0;
}

1;
