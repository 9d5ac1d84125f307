// SPDX-License-Identifier: Apache-2.0
/*
 * test_where.js PACKAGE - which step malloc() serves, by TAP. libebb-malloc is preloaded and tells
 * its statistics at a socket, EBB_MALLOC_STATS.
 */
'use strict';

const assert = require('assert');
const crypto = require('crypto');
const fs = require('fs');
const net = require('net');
const vm = require('vm');
const { once } = require('events');
const { setTimeout: sleep } = require('timers/promises');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');

const { loadAgain, run, withCopy } = require('./tap.js');

const [folder] = process.argv.slice(2);
const ebb = require(folder);

const nothing = () => {};
const sites = []; // those that are collected are not told

/* Native code mallocs 4 MiB, which is far more than all else needs, and frees them. */
const CALL_BYTES = 4 << 20;
const allocate = () => { crypto.scryptSync('', '', 1, { N: CALL_BYTES / 1024, r: 8, p: 1 }); };

const socket = process.env.EBB_MALLOC_STATS.replace('unix:', '').replace('%p', process.pid);

/* What the socket says. Until its thread listens there is nobody. */
async function ask(tries = 500) {
  try {
    return (await net.connect(socket).setEncoding('utf8').toArray()).join('');
  } catch (why) {
    if (tries === 0 || !['ENOENT', 'ECONNREFUSED'].includes(why.code)) throw why;
    await sleep(20);
    return ask(tries - 1);
  }
}

/* The statistics as they are now: numbers by their names for each site that there is. */
async function tell() {
  const told = {};
  const text = await ask();
  for (const part of text.split(/^site /m).slice(1)) {
    const [name, ...lines] = part.split('\n');
    told[name] = Object.fromEntries(lines.map((line) => line.trim().split(/ +/)));
  }
  return told;
}

/* So often was allocate() called in steps of the sites, of which none is open. */
async function expectCalls(wanted) {
  const told = await tell();
  const found = {};
  for (const name of Object.keys(wanted)) {
    found[name] = Math.round(Number(told[name].scope_bytes_total) / CALL_BYTES);
    assert.strictEqual(told[name].scopes_open, '0', name);
  }
  assert.deepStrictEqual(found, wanted);
}

function siteOf(name) {
  return sites[sites.push(new ebb.Site(name)) - 1];
}

/* Steps of sites with these names, and the end of them all. */
function open(...names) {
  const steps = names.map((name) => siteOf(name).begin());
  return [...steps, () => steps.forEach((step) => step.end())];
}

/* A script that is over before the function is. */
function interrupted(work) {
  assert.throws(() => vm.runInNewContext('work()', { work }, { timeout: 20 }),
    { code: 'ERR_SCRIPT_EXECUTION_TIMEOUT' });
}

/* The stack is full in each part of what `work` does: it begins a bit higher each time. */
function overflown(work) {
  const again = () => { work(again); };
  const from = (height) => { if (height) from(height - 1); else again(); };
  for (let height = 0; height < 20; height++) assert.throws(() => from(height), RangeError);
}

/* A package in a context with a global object of its own, as test runners have them. */
function loadElsewhere(place) {
  const inside = (name) => require(name.startsWith('./') ? `${place}/${name}` : name);
  const module = { exports: {} };
  const text = fs.readFileSync(`${place}/index.js`, 'utf8');
  vm.runInNewContext(`(function (require, module) {${text}\n})`)(inside, module);
  return module.exports;
}

function forever() {
  for (;;);
}

/* Objects that nobody has go, and what waits for that happens. */
async function collect() {
  require('v8').setFlagsFromString('--expose-gc');
  const gc = vm.runInNewContext('gc');
  for (let i = 0; i < 3; i++) { gc(); await sleep(1); }
}

const tests = {
  async 'a script whose stack was full is in no step afterwards'() {
    const site = siteOf('full');
    const fullSteps = siteOf('full steps');
    const steps = [];
    const begin = () => steps[steps.push(fullSteps.begin()) - 1];
    // The first test: what is called for the first time is compiled, which takes stack.
    overflown((again) => begin().run(again));
    overflown((again) => site.run(again));
    allocate(); // nobody's
    for (const step of steps) step.end();
    await expectCalls({ full: 0, 'full steps': 0 });
  },

  async 'a function that is run inside of another leaves that one where it was'() {
    const [outer, inner, end] = open('outer', 'inner');
    outer.run(() => {
      outer.run(allocate);
      allocate();
      inner.run(() => {
        outer.run(allocate);
        allocate(); // inner
      });
      allocate();
      outer.leave();
      inner.run(allocate);
      allocate(); // nobody's
    });
    allocate(); // nobody's
    outer.enter();
    assert.throws(() => outer.run(() => { throw new RangeError('no'); }), RangeError);
    allocate();
    outer.leave();
    allocate(); // nobody's
    end();
    await expectCalls({ outer: 5, inner: 2 });
  },

  async 'the step of a function of its own is where it was, too'() {
    const [above, below, end] = open('above', 'below');
    const middle = siteOf('middle');
    above.run(() => {
      middle.run(() => { below.run(nothing); allocate(); });
      middle.run(() => { above.run(allocate); allocate(); });
      allocate();
    });
    end();
    await expectCalls({ above: 2, middle: 2, below: 0 });
  },

  async 'so is one that was entered by hand'() {
    const [first, second, third, end] = open('first', 'second', 'third');
    first.run(() => {
      second.enter();
      third.run(() => { first.run(nothing); allocate(); });
      allocate();
      second.leave();
      allocate();
    });
    end();
    await expectCalls({ first: 1, second: 1, third: 1 });
  },

  async 'steps inside of one that is run stay inside of it, in their order'() {
    const [a, b, c, d, end] = open('a', 'b', 'c', 'd');
    for (const step of [a, b, c, d]) step.enter();
    a.run(() => { b.run(nothing); c.leave(); });
    d.leave();
    allocate(); // b
    b.leave();
    allocate(); // a
    a.leave();
    allocate(); // nobody's
    end();
    await expectCalls({ a: 1, b: 1, c: 0, d: 0 });
  },

  async 'what a function enters once more is inside of all but the one that was served'() {
    const [x, z, y, run, end] = open('x', 'z', 'y', 'run for x');
    for (const step of [x, z, y]) step.enter();
    run.run(() => x.enter());
    allocate(); // y
    y.leave();
    allocate(); // x, which would be z
    x.leave();
    allocate(); // z
    end();
    await expectCalls({ x: 1, z: 1, y: 1, 'run for x': 0 });
  },

  async 'what a function enters is left when it ends'() {
    const [outer, run, entered, end] = open('around', 'run', 'entered meanwhile');
    const enter = () => { entered.enter(); throw new RangeError('no'); };
    const site = siteOf('run once');
    for (const place of [run, site]) {
      assert.throws(() => place.run(enter), RangeError);
      allocate(); // nobody's
      outer.enter();
      assert.throws(() => place.run(enter), RangeError);
      outer.leave();
      allocate(); // nobody's
    }
    end();
    await expectCalls({ around: 0, run: 0, 'entered meanwhile': 0, 'run once': 0 });
  },

  async 'what two loads of the package run is as if it were one'() {
    const [here, end] = open('here');
    const other = new (loadAgain(folder).Site)('there');
    const there = other.begin();
    here.run(() => there.run(() => { here.run(nothing); allocate(); }));
    there.run(() => { other.run(() => here.run(allocate)); allocate(); });
    end();
    there.end();
    await expectCalls({ here: 1, there: 2 });
  },

  async 'so is what two copies of the package run, in whatever context'() {
    for (const [name, load] of Object.entries({ copy: require, 'copy elsewhere': loadElsewhere })) {
      await withCopy(folder, async (copy) => {
        const [here, end] = open(`original of ${name}`);
        const other = new (load(copy).Site)(name);
        const there = other.begin();
        here.run(() => there.run(() => { here.run(nothing); allocate(); }));
        end();
        there.end();
        await expectCalls({ [`original of ${name}`]: 0, [name]: 1 });
        sites.push(other);
      });
    }
  },

  async 'what is left, entered and ended inside stays so'() {
    const [kept, ended, left, end] = open('kept', 'ended inside', 'left inside');
    kept.run(() => {
      left.run(() => {
        ended.run(() => { ended.end(); left.leave(); allocate(); });
        allocate();
      });
      allocate();
    });
    left.enter();
    allocate();
    left.leave();
    assert.throws(end, { code: 'EBB_E_STALE' });
    left.end();
    await expectCalls({ kept: 3, 'left inside': 1, 'ended inside': 0 });
  },

  async 'a script that is terminated is in no step afterwards'() {
    const [step, end] = open('terminated step');
    const site = siteOf('terminated');
    interrupted(() => site.run(forever));
    interrupted(() => step.run(forever));
    interrupted(() => site.run(() => step.run(() => site.run(forever))));
    allocate(); // nobody's
    step.run(() => { interrupted(() => site.run(forever)); allocate(); });
    end();
    await expectCalls({ terminated: 0, 'terminated step': 1 });
  },

  async 'the steps and sites of a worker go with it'() {
    for (const how of ['runs', 'runs a step', 'exits', 'is done', 'has two loads']) {
      const worker = new Worker(__filename, { argv: [folder], workerData: how });
      const exit = once(worker, 'exit');
      const [message] = await Promise.race([once(worker, 'message'), exit]);
      assert.strictEqual(message, 'in a step');
      if (how === 'runs') assert.strictEqual((await tell())[how].scopes_open, '1');
      if (how.startsWith('runs')) await worker.terminate();
      await exit;
    }
    const left = Object.keys(await tell()).filter((name) => /runs|exits|done|loads/.test(name));
    assert.deepStrictEqual(left, []);
  },

  async 'a site is there as long as a step of it'() {
    const step = (() => new ebb.Site('only once').begin())();
    await collect();
    step.run(allocate);
    assert.strictEqual((await tell())['only once'].scopes_open, '1');
    step.end();
    assert.strictEqual((await tell())['only once'], undefined);
  },

  async 'sites go that are collected together with their load of the package'() {
    for (let i = 0; i < 50; i++)
      new (loadElsewhere(folder).Site)(`gone with its load ${i}`).run(nothing);
    await collect();
    const left = Object.keys(await tell()).filter((name) => name.startsWith('gone with'));
    assert.deepStrictEqual(left, []);
  },
};

/* What a worker does: it ends in a step, or with one open. */
function end(how) {
  const site = new ebb.Site(how);
  const work = () => {
    allocate();
    parentPort.postMessage('in a step');
    if (how === 'exits') process.exit(0);
    forever();
  };
  if (how === 'runs' || how === 'exits') return site.run(work);
  const step = site.begin();
  if (how === 'runs a step') return step.run(work);
  step.enter();
  if (how === 'has two loads') new (loadAgain(folder).Site)('of loads').begin().enter();
  return parentPort.postMessage('in a step');
}

if (isMainThread) {
  process.on('exit', () => fs.rmSync(socket, { force: true }));
  run(tests);
} else {
  end(workerData);
}
