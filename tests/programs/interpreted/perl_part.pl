# SPDX-License-Identifier: Apache-2.0
# A file that perl.pl does.
main::spin(20);
sub Part::inner {
	main::spin(20);
}
Part::inner();
1;
