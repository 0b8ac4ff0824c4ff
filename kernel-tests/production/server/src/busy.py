import sys, json, re, zlib

word = re.compile(r"(\w+)@(\w+)\.org")


class Account:
    def __init__(self, name, balance):
        self.name, self.balance = name, balance

    def interest(self, rate):
        self.balance += self.balance * rate // 100
        return self.balance


def work(n):
    accounts = [Account("user%d@host%d.org" % (i * n % 97, i % 7), i * 31 % 101) for i in range(60)]
    totals = {}
    for a in sorted(accounts, key=lambda a: (a.balance, a.name)):
        m = word.match(a.name)
        totals[m.group(2)] = totals.get(m.group(2), 0) + a.interest(n % 5)
    text = json.dumps(totals)
    return zlib.crc32(text.encode()) ^ sum(json.loads(text).values())


for line in sys.stdin:
    sys.stdout.write("%d\n" % work(int(line)))
    sys.stdout.flush()
