package zoo

import (
	"fmt"
	"strings"
)

const (
	bashCounts = `
declare -A seen
while read -r n word rest; do
	[[ $word =~ ^([a-z]+)([0-9]*)$ ]] || continue
	key=${BASH_REMATCH[1]}
	((seen[$key] += n))
	[ -n "${BASH_REMATCH[2]}" ] && numbered+=("$word")
done
for key in "${!seen[@]}"; do printf '%s %d\n' "$key" "${seen[$key]}"; done
echo ${#numbered[@]} "${numbered[*]:0:3}"
`
	bashRecursive = `
hanoi() { local n=$1; ((n == 0)) && return; hanoi $((n - 1)) $2 $4 $3; moves=$((moves + 1));
	hanoi $((n - 1)) $4 $3 $2; }
moves=0; hanoi 6 a b c
primes=()
for ((i = 2; i < 120; i++)); do
	for p in "${primes[@]}"; do ((i % p == 0)) && continue 2; done
	primes+=($i)
done
text=$(printf '%s,' "${primes[@]}"); IFS=, read -ra back <<<"$text"
case ${back[5]} in 1?) kind=teen ;; [0-9]) kind=digit ;; *) kind=other ;; esac
echo $moves ${#primes[@]} $kind ${text//,/ }
`
	pythonRecords = `
import json, re
rows = [{'id': i, 'name': 'row %d' % (i * 7919 % 1009), 'tags': ['a', 'b'] * (i % 3)}
	for i in range(150)]
back = json.loads(json.dumps(rows))
word = re.compile(r'row (\d+)')
total = sum(int(word.match(r['name']).group(1)) for r in back if r['tags'])
print(total, len(sorted(back, key=lambda r: r['name'])))
`
	pythonObjects = `
import heapq, collections
class Node:
    def __init__(self, key): self.key, self.edges = key, {}
    def join(self, other, cost): self.edges[other.key] = cost
nodes = [Node(i) for i in range(80)]
for i, n in enumerate(nodes):
    for step in (1, 7, 13): n.join(nodes[(i + step) % 80], step * 3 % 5 + 1)
def shortest(start):
    best, heap = {start: 0}, [(0, start)]
    while heap:
        d, at = heapq.heappop(heap)
        for to, cost in nodes[at].edges.items():
            if d + cost < best.get(to, 1 << 30):
                best[to] = d + cost
                heapq.heappush(heap, (d + cost, to))
    return best
print(sum(sum(shortest(s).values()) for s in range(0, 80, 20)),
    collections.Counter(len(n.edges) for n in nodes))
`
	sqliteJoin = `
create table author(id integer primary key, name text);
create table book(id integer primary key, author int, title text, price real);
insert into author select value, 'author ' || value from generate_series(1, 60);
insert into book select value, value * 37 % 60 + 1, printf('title %05d', value * 7919 % 10007),
	value % 50 / 2.0 from generate_series(1, 1500);
create index by_author on book(author);
select name, count(*), round(avg(price), 2), max(title)
	from author join book on author.id = book.author
	group by name having count(*) > 5 order by 3 desc limit 10;
select title from book where title like '%42%' order by title limit 5;
`
	sqliteUpdate = `
create table event(day text, kind int, body text);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 900)
	insert into event select date('2020-01-01', i || ' days'), i % 7,
		json_object('n', i, 'sq', i * i) from n;
update event set kind = kind + 1 where json_extract(body, '$.n') % 3 = 0;
delete from event where day < '2020-03-01';
select strftime('%Y-%m', day) m, sum(json_extract(body, '$.sq')), group_concat(distinct kind)
	from event group by m;
select kind, row_number() over (partition by kind order by day), lag(day) over (order by day)
	from event limit 20;
`
	perlCounts = `
my (%count, @long);
while (<STDIN>) {
	chomp;
	for my $w (split /\s+/) { $count{lc $w}++; push @long, $w if length($w) > 4 }
	s/(\d+)/<$1>/g;
	$all .= $_ if /<\d3>/;
}
print join(' ', map { "$_=$count{$_}" } sort { $count{$b} <=> $count{$a} || $a cmp $b }
	keys %count), "\n";
print scalar(@long), ' ', length($all), "\n";
`
	perlMatrices = `
sub multiply { my ($a, $b) = @_; my @c;
	for my $i (0 .. $#$a) { for my $j (0 .. $#$b) { my $s = 0;
		$s += $a->[$i][$_] * $b->[$_][$j] for 0 .. $#$b; $c[$i][$j] = $s % 97 } }
	return \@c }
my $m = [map { my $i = $_; [map { ($i * 31 + $_ * 17) % 97 } 0 .. 11] } 0 .. 11];
my $p = $m; $p = multiply($p, $m) for 1 .. 3;
my %memo; sub ways { my $n = shift; return $memo{$n} //= $n < 2 ? 1 : ways($n - 1) + ways($n - 2) }
my @sieve = grep { my $n = $_; !grep { $n % $_ == 0 } 2 .. sqrt $n } 2 .. 400;
printf "%s %d %s\n", join(',', map { sprintf '%02x', $_ } @{$p->[5]}), ways(30),
	pack('w*', @sieve) =~ tr/a-z//;
`
)

// Pairs lists real programs, each with two inputs that give it different work of the same kind:
// what is learned from one is of use with the other.
func Pairs() [][2]Real {
	var records, words, log, code strings.Builder
	for i := range 900 {
		fmt.Fprintf(&records, "%d item%d %d.%d\n", i*7919%10007, i%13, i*37%101, i%10)
		fmt.Fprintf(&words, "%s%d %s the %s of it\n", []string{"Oak", "elm", "Birch", "ash"}[i*7%4],
			i*31%9, []string{"falls", "grows", "turns"}[i%3], []string{"leaf", "bark", "root",
				"branch", "crown"}[i*i%5])
		fmt.Fprintf(&log, "2024-0%d-%02d host%d kernel[%d]: eth%d: link %s, %d Mbps\n", i%9+1,
			i%28+1, i%5, i*17%4096, i%3, []string{"up", "down"}[i*i%2], i*i%1000)
		fmt.Fprintf(&code, "static int f%d(int a, int b) { return a %c %d ? b + %d : f%d(b, a - "+
			"1); } /* %x */\n", i, "<>=!"[i%4], i*3, i%17, i/2, i*i*7919)
	}
	first := func(b *strings.Builder, n int) string { return b.String()[:n] }
	bash := func(script, input string) Real {
		return Real{Name: "bash", Command: "bash", Package: "bash",
			Args: []string{"--norc", "--noprofile", "-c", script}, Stdin: input}
	}
	python := func(script string) Real {
		return Real{Name: "python3", Command: "python3", Package: "python3",
			Args: []string{"-S", "-s", "-B", "-c", script}}
	}
	sqlite := func(query string) Real {
		return Real{Name: "sqlite3", Command: "sqlite3", Package: "sqlite3",
			Args: []string{":memory:"}, Stdin: query}
	}
	gzip := func(level, input string) Real {
		return Real{Name: "gzip", Command: "gzip", Package: "gzip",
			Args: []string{level, "-n", "-c"}, Stdin: input}
	}
	sed := func(input string, args ...string) Real {
		return Real{Name: "sed", Command: "sed", Package: "sed", Args: args, Stdin: input}
	}
	sort := func(input string, args ...string) Real {
		return Real{Name: "sort", Command: "sort", Package: "coreutils",
			Args: append([]string{"--parallel=1", "-S", "1M"}, args...), Stdin: input}
	}
	perl := func(script, input string) Real {
		return Real{Name: "perl", Command: "perl", Package: "perl-base",
			Args: []string{"-e", script}, Stdin: input}
	}
	return [][2]Real{
		{bash(bashCounts, first(&records, 4000)), bash(bashRecursive, "")},
		{python(pythonRecords), python(pythonObjects)},
		{sqlite(sqliteJoin), sqlite(sqliteUpdate)},
		{gzip("-6", log.String()), gzip("-9", code.String())},
		{sed(log.String(), "-n", `s/host\([0-9]\) kernel\[\([0-9]*\)\]/\2@\1/; /down/p`),
			sed(code.String(), "-E", `/^static/!d; s/f[0-9]+/g&/g; y/abc/xyz/; G; $!N`)},
		{sort(records.String(), "-n"), sort(words.String(), "-f", "-k2,2", "-k1,1r")},
		{perl(perlCounts, words.String()), perl(perlMatrices, "")},
	}
}
