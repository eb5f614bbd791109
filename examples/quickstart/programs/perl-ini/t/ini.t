use strict;
use warnings;
use Test::More tests => 9;
use Ini;

my $ini = Ini->parse("; a comment\n[server]\nhost = example.test   \nport=80 # the usual\n\n[empty]\n");
is($ini->get('server', 'host'), 'example.test', 'a value without the space around it');
is($ini->get('server', 'port'), '80', 'a comment after a value is no part of it');
is($ini->get('server', 'user', 'nobody'), 'nobody', 'a default for what is not there');
is_deeply([$ini->sections], ['empty', 'server'], 'sections are listed in order');

eval { Ini->parse("a = 1\n") };
is($@, "line 1: a value before the first section\n", 'a value needs a section');
eval { Ini->parse("[a]\nwhat is this\n") };
is($@, "line 2: neither a section nor key = value\n", 'another line is refused with its number');

is(Ini->parse("[a]\nb = \"x # y\"\n")->get('a', 'b'), 'x # y', 'a quoted value keeps its number sign');
is(Ini->parse("[a]\nb = \"x\" ; the rest\n")->get('a', 'b'), 'x', 'a comment after a quoted value');

my $copy = Ini->parse(Ini->parse("[a]\n")->set('a', 'color', '#fff; bold')->text);
is($copy->get('a', 'color'), '#fff; bold', 'what was written is read back');
