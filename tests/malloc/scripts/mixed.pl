#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# mixed.pl - some of everything that Perl programs allocate for; prints digests.
use strict;
use warnings;
use threads;
use Data::Dumper;
use Digest::SHA qw(sha256_hex);
use Encode;
use List::Util qw(sum);
use Storable qw(dclone);

my %words;
my $text = join ' ', map { "word" . ($_ * 7919 % 1009) . "x" x ($_ % 40) } 1 .. 20000;
$words{$1}++ while $text =~ /(\w+)/g;
my @sorted = sort { $words{$b} <=> $words{$a} || $a cmp $b } keys %words;
print "@sorted[0..9]\n", scalar(@sorted), "\n";

my $deep = { map { $_ => [ map { { n => $_ } } 1 .. 50 ] } 1 .. 200 };
local $Data::Dumper::Sortkeys = 1;
print sha256_hex(Dumper(dclone($deep))), "\n";
(my $changed = $text) =~ s/(\d+)/<$1>/g;
print length $changed, "\n";

sub work {
    my $number = shift;
    return sum(map { length("a" x ($_ % 100)) } 1 .. 5000) + $number;
}
my @threads = map { threads->create(\&work, $_) } 1 .. 4;
print join(",", map { $_->join } @threads), "\n";
print sha256_hex(encode("UTF-16", decode("UTF-8", "\xc3\xa4" x 5000))), "\n";

print `echo from a child`;
my $pid = fork;
if (!$pid) {
    my @list = (1) x 10000;
    exit 3;
}
waitpid $pid, 0;
print $? >> 8, "\n";
