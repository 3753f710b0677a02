#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A program whose stacks are known (perl.truth): perl.pl [SECONDS [THREADS]]
# spin, and loops one, two and three of 2000, 4000 and 6000, are the innermost functions.
package Shape;
sub new {
	my ($class, $side) = @_;
	return bless {side => $side}, $class;
}

sub area {
	my ($self) = @_;
	return $self->work(40);
}

sub work {
	my ($self, $n) = @_;
	return main::spin($n * $self->{side});
}

package Square;
our @ISA = ('Shape');

sub area {
	my ($self) = @_;
	return $self->SUPER::area() + 1;
}

package Number;
use overload
	'+' => \&plus,
	'<=>' => \&compare;

sub plus {
	my ($left, $right) = @_;
	main::spin(30);
	return bless {value => $left->{value} + (ref $right ? $right->{value} : $right)}, 'Number';
}

sub compare {
	my ($left, $right, $swapped) = @_;
	main::spin(3);
	return $left->{value} < $right->{value} ? -1 : 1;
}

package Counter;
sub TIESCALAR {
	my $value = 0;
	return bless \$value;
}

sub FETCH {
	my ($self) = @_;
	main::spin(20);
	return $$self++;
}

sub DESTROY {
	my ($self) = @_;
	main::spin(10);
}

package main;

sub spin {
	my ($n) = @_;
	my $sum = 0;
	for my $i (1 .. $n * 20) {
		$sum += $i ^ 7;
	}
	return $sum;
}

sub fib {
	my ($n) = @_;
	if ($n < 2) {
		return spin(1);
	}
	return fib($n - 1) +
		fib($n - 2);
}

sub recursion {
	return fib(8);
}

sub methods {
	my $sum = 0;
	foreach my $shape (Shape->new(1), Square->new(2)) {
		$sum += $shape->area();
	}
	return $sum;
}

sub make_adder {
	my ($by) = @_;
	return sub {
		my ($value) = @_;
		return $value + spin($by);
	};
}

sub closures {
	my $adder = make_adder(60);
	return $adder->(1) + $adder->(2);
}

sub by_weight {
	spin(4);
	return $a <=> $b;
}

sub weight {
	my ($x, $y) = @_;
	spin(4);
	return $x <=> $y;
}

sub sorts {
	my @list = (5, 3, 9, 1, 7, 2, 8);
	my @by_name = sort by_weight @list;
	my @by_block = sort {
		weight($a, $b)
	} @list;
	return $by_name[0] + $by_block[0];
}

sub maps {
	my @twice = map {
		spin(15);
		$_ * 2
	} 1 .. 5;
	my @some = grep { spin(10) } @twice;
	return scalar @some;
}

sub throws {
	my ($n) = @_;
	spin(20);
	die "thrown\n" if $n == 0;
	return throws($n - 1);
}

sub exceptions {
	my $caught = eval {
		throws(3);
		1;
	};
	return $@ if !$caught;
}

sub evals {
	return eval "spin(50);\nspin(50);\n1";
}

sub overloads {
	my $sum = Number->new1(1) + Number->new1(2);
	my @sorted = sort { $a <=> $b } map { Number->new1($_) } 3, 1, 2;
	return $sum->{value} + $sorted[0]{value};
}

sub Number::new1 {
	my ($class, $value) = @_;
	return bless {value => $value}, $class;
}

sub ties {
	tie my $counter, 'Counter';
	my $sum = $counter + $counter;
	return $sum;
}

sub pattern {
	my $text = 'abcabc';
	$text =~ s/b/spin(20)/ge;
	return $text =~ /c(?{ spin(20) })a/;
}

sub one {
	my $sum = 0;
	for my $i (1 .. 2000) {
		$sum += $i ^ 7;
	}
}

sub two {
	my $sum = 0;
	for my $i (1 .. 4000) {
		$sum += $i ^ 7;
	}
}

sub three {
	my $sum = 0;
	for my $i (1 .. 6000) {
		$sum += $i ^ 7;
	}
}

sub shares {
	one();
	two();
	three();
}

# Written to a file that no one reads.

format OUT =
@<<<<<<<
formatted()
.

sub formatted {
	spin(30);
	return 'field';
}

sub formats {
	open OUT, '>', '/dev/null';
	write OUT;
	close OUT;
}

sub jumped {
	spin(20);
}

sub jumps {
	goto &jumped;
}

sub AUTOLOAD {
	spin(10);
}

sub applied (&@) {
	my ($code, @list) = @_;
	return map { $code->($_) } @list;
}

sub applies {
	undefined_function();
	my $method = 'work';
	Shape->new(1)->$method(10);
	return applied {
		spin(10)
	} 1, 2;
}

sub warns {
	local $SIG{__WARN__} = sub {
		spin(20);
	};
	warn 'warned';
}

sub local_sub {
	no warnings 'redefine';
	local *jumped = sub {
		spin(20);
	};
	jumped();
}

(my $part = $0) =~ s{[^/]*$}{};
$part = ($part =~ m{^/} ? $part : "./$part") . 'perl_part.pl';

sub files {
	return do $part;
}

sub caught_in_sort {
	my @list = sort {
		eval {
			weight($a, $b)
		}
	} 3, 1, 2;
	return $list[0];
}

my $lexical = sub {
	my ($n) = @_;
	spin($n);
};

sub everything {
	recursion();
	methods();
	closures();
	sorts();
	maps();
	exceptions();
	evals();
	overloads();
	ties();
	pattern();
	caught_in_sort();
	shares();
	formats();
	jumps();
	applies();
	warns();
	local_sub();
	files();
	$lexical->(60);
}

sub run {
	my ($seconds) = @_;
	my $end = time + $seconds;
	while (time < $end) {
		everything();
	}
}

my ($seconds, $threads) = (@ARGV, 10, 1);
$threads = 1 if @ARGV < 2;
if ($threads > 1) {
	require threads;
	my @others = map { threads->create(\&run, $seconds) } 2 .. $threads;
	run($seconds);
	$_->join foreach @others;
} else {
	run($seconds);
}
