package Ini;
# Reads and writes INI files: [section], key = value, comments with ; or #.
use strict;
use warnings;

sub parse {
    my ($class, $text) = @_;
    my (%sections, $section);
    my $line = 0;
    for (split /\n/, $text) {
        ++$line;
        s/\s+$//;
        next if /^\s*([;#]|$)/;
        if (/^\[\s*([^\]]+?)\s*\]$/) {
            $section = $1;
            $sections{$section} //= {};
        } elsif (/^\s*([^=]+?)\s*=\s*(.*)$/) {
            die "line $line: a value before the first section\n" unless defined $section;
            my ($key, $value) = ($1, $2);
            $value =~ s/\s*[;#].*$//;
            $value =~ s/^"(.*)"$/$1/;
            $sections{$section}{$key} = $value;
        } else {
            die "line $line: neither a section nor key = value\n";
        }
    }
    return bless {sections => \%sections}, $class;
}

sub get {
    my ($self, $section, $key, $default) = @_;
    my $found = $self->{sections}{$section};
    return defined $found && exists $found->{$key} ? $found->{$key} : $default;
}

sub sections { return sort keys %{$_[0]{sections}} }

sub keys_of {
    my ($self, $section) = @_;
    return sort keys %{$self->{sections}{$section} // {}};
}

sub set {
    my ($self, $section, $key, $value) = @_;
    $self->{sections}{$section}{$key} = $value;
    return $self;
}

sub text {
    my ($self) = @_;
    my $out = '';
    for my $section ($self->sections) {
        $out .= "\n" if $out ne '';
        $out .= "[$section]\n";
        for my $key ($self->keys_of($section)) {
            my $value = $self->get($section, $key);
            $value = "\"$value\"" if $value =~ /[;#]|^\s|\s$/;
            $out .= "$key = $value\n";
        }
    }
    return $out;
}

1;
