# SPDX-License-Identifier: Apache-2.0
"""test_spikes.py - interpreters and SQLite: 250 MB in small blocks, then none of them, twice.

What they compute is right, what they need comes back while they wait, and the second time leaves no
more than the first.
"""

import subprocess
import sys
import unittest

from kit import Case

COUNT = 250_000  # blocks of a thousand bytes
ANSWER = COUNT * 1000

# Each answers a line by the bytes that it has, the next by what is left of them.
SCRIPTS = {
    "perl": ["perl", "-e", """
        $| = 1; our %held;
        while (<STDIN>) {
            if (/fill/) {
                $held{$_} = sprintf('%1000d', $_) for 1 .. COUNT;
            } else { undef %held }
            my $sum = 0; $sum += length for values %held; print "$sum\\n";
        }"""],
    "python3": ["python3", "-c", """if 1:
        import sys
        held = {}
        for line in sys.stdin:
            held = {i: b'%1000d' % i for i in range(COUNT)} if 'fill' in line else {}
            print(sum(map(len, held.values())), flush=True)"""],
    "ruby": ["ruby", "-e", """
        STDOUT.sync = true
        def fill(held) = COUNT.times { |i| held[i] = i.to_s.rjust(1000) }
        held = {}
        while line = STDIN.gets
            if line.include?('fill') then fill(held) else held = {}; 3.times { GC.start } end
            puts held.values.sum(&:size)
        end"""],
    "php8.2": ["php8.2", "-d", "memory_limit=-1", "-r", """
        while ($line = fgets(STDIN)) {
            $held = [];
            if (str_contains($line, 'fill'))
                for ($i = 0; $i < COUNT; $i++) $held[] = str_pad("$i", 1000);
            echo array_sum(array_map('strlen', $held)), "\\n";
        }"""],
    "lua5.4": ["lua5.4", "-e", """
        io.stdout:setvbuf('no')
        for line in io.lines() do
            held = {}
            if line:find('fill') then
                for i = 1, COUNT do held[i] = string.format('%010d', i):rep(100) end
            else collectgarbage() end
            local sum = 0
            for _, text in pairs(held) do sum = sum + #text end
            print(sum)
        end"""],
    "node": ["node", "--expose-gc", "-e", """
        let held = [];
        require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
            held = [];
            if (line.includes('fill'))
                for (let i = 0; i < COUNT / 100; i++) held.push(new Uint8Array(100_000).fill(1));
            else for (let i = 0; i < 4; i++) gc();
            console.log(held.reduce((sum, one) => sum + one.byteLength, 0));
        })"""],
    "sqlite3": ["python3", "-c", """if 1:
        import sqlite3, sys
        base = sqlite3.connect(':memory:')
        for line in sys.stdin:
            base.executescript('drop table if exists held; create table held(text); vacuum')
            if 'fill' in line:
                base.executescript('''insert into held with recursive n(i) as (select 1
                    union all select i + 1 from n where i < COUNT)
                    select printf('%1000d', i) from n''')
            print(*base.execute('select ifnull(sum(length(text)), 0) from held').fetchone(),
                  flush=True)"""],
}


class Spikes(Case):
    def ask(self, process, line, answer):
        process.stdin.write(line)
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), b"%d\n" % answer)

    def check(self, name):
        self.way.env["USE_ZEND_ALLOC"] = "0"  # or PHP maps its own
        words = [word.replace("COUNT", str(COUNT)) for word in SCRIPTS[name]]
        with self.runs(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
            process = running.process
            self.ask(process, b"empty\n", 0)
            before = running.level()
            self.ask(process, b"fill\n", ANSWER)
            self.ask(process, b"empty\n", 0)
            in_use = running.allocated()
            self.ask(process, b"fill\n", ANSWER)
            peak = running.resident()
            self.ask(process, b"empty\n", 0)
            self.check_comes_back(running, before, peak)
            self.check_nothing_is_lost(running, in_use)


def add_tests():
    for name in SCRIPTS:
        setattr(Spikes, "test_" + name.replace(".", "_"), lambda self, name=name: self.check(name))


add_tests()

if __name__ == "__main__":
    sys.exit(unittest.main())
