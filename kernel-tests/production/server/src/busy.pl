use strict;
use warnings;
$| = 1;

sub interest { my ($a, $rate) = @_; $a->{balance} += int($a->{balance} * $rate / 100); $a->{balance} }

sub work {
	my $n = shift;
	my @accounts = map { { name => sprintf("user%d\@host%d.org", $_ * $n % 97, $_ % 7),
		balance => $_ * 31 % 101 } } 0 .. 59;
	my %totals;
	for my $a (sort { $a->{balance} <=> $b->{balance} || $a->{name} cmp $b->{name} } @accounts) {
		$totals{$2} += interest($a, $n % 5) if $a->{name} =~ /^(\w+)\@(\w+)\.org$/;
	}
	my $text = join ',', map { "$_=$totals{$_}" } sort keys %totals;
	return unpack('%32C*', $text);
}

while (my $line = <STDIN>) {
	print work($line + 0), "\n";
}
