# Asks in one way, the argument, and prints what was answered.
use strict;
use warnings;
$| = 1;

my ($library, $kind) = split ' ', $ARGV[0];
my @parts = ('Auth', 'Storage', 'Mail');
my $got;
if ($library eq 'choose') {
    require Term::Choose;
    $got = Term::Choose::choose(\@parts, {prompt => 'Which part do you want?', layout => $kind eq 'rows' ? 2 : 0});
} else {
    require Term::ReadLine;
    require Term::UI;
    my $term = Term::ReadLine->new('it');
    $got = $kind eq 'yn'
        ? $term->ask_yn(prompt => 'Do you want to delete it?', default => 'n')
        : $term->get_reply(prompt => 'Which part do you want?', choices => \@parts, default => 'Auth');
}
print 'answered ', $got // 'nothing', "\n";
sleep 600;
