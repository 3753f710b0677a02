# SPDX-License-Identifier: Apache-2.0
# A file that perl.pl does.
main::spin(20);
sub Part::inner {
	main::spin(20);
}
Part::inner();
sub Part::made {
	main::spin(20);
# line 100 "template"
	main::spin(20);
# line 13 "perl_part.pl"
}
Part::made();
1;
