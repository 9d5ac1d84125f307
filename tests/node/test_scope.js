// SPDX-License-Identifier: Apache-2.0
/*
 * test_scope.js PACKAGE [served] - the package ebb-scope, by TAP. With `served` libebb-malloc has
 * to be in the process, without it must not be: all else is the same.
 */
'use strict';

const assert = require('assert');
const { spawnSync } = require('child_process');
const vm = require('vm');
const { Worker, isMainThread, workerData } = require('worker_threads');

const { loadAgain, run, withCopy } = require('./tap.js');

const [folder, served] = process.argv.slice(2);
const ebb = require(isMainThread ? folder : workerData.folder);

/* Something that native code mallocs and frees, and something that lives on. */
function work(size = 5000) {
  const kept = Buffer.alloc(size, 7);
  require('zlib').deflateSync(kept);
  return kept;
}

/* An External, which is another's: what Node has for the native side of a stream. */
async function externalOf() {
  const server = require('net').createServer().listen(0, '127.0.0.1');
  await require('events').once(server, 'listening');
  const external = server._handle._externalStream;
  server.close();
  assert.ok(require('util').types.isExternal(external));
  return external;
}

/* What a worker does that wants more memory until there is none. */
const FULL = `
  const ebb = require(require('worker_threads').workerData);
  new ebb.Site('full').run(() => {
    for (const all = []; ;) all.push(new Array(1000).fill({}));
  });
`;

/* What a worker does that tells the number of a step. */
const TELLS = `
  const { parentPort, workerData } = require('worker_threads');
  parentPort.postMessage(new (require(workerData).Site)('told').begin().number);
`;

/* A program that makes a site for each request says by how many MB it has grown. */
const GROWS = `
  const ebb = require(process.argv[1]);
  const before = process.memoryUsage().rss;
  (async () => {
    for (let i = 0; i < 20000; i++) {
      new ebb.Site('dropped').run(() => Buffer.alloc(2000));
      await new Promise(setImmediate);
    }
    console.log(Math.round((process.memoryUsage().rss - before) / 1e6));
  })();
`;

const tests = {
  'says whether it is served'() {
    assert.strictEqual(ebb.isServed(), served === 'served');
  },

  'a function runs in a step of its own'() {
    const site = new ebb.Site('plain');
    const kept = [];
    for (let i = 0; i < 200; i++) kept.push(site.run(() => work(1 + i * 37)));
    for (const [i, buffer] of kept.entries()) {
      assert.strictEqual(buffer.length, 1 + i * 37);
      assert.ok(buffer.every((byte) => byte === 7), `buffer ${i}`);
    }
  },

  'a step ends when its function throws, and throws the same'() {
    const site = new ebb.Site('thrown');
    for (let i = 0; i < 100; i++)
      assert.throws(() => site.run(() => { throw new RangeError(`no ${i}`); }), RangeError);
    const step = site.begin();
    assert.throws(() => step.run(() => { throw new RangeError('no'); }), RangeError);
    step.end();
  },

  'a step whose number was guessed in its own function ends once'() {
    const native = require(`${folder}/ebb_scope.node`);
    const site = new ebb.Site('guessed');
    const step = site.begin();
    step.end();
    const next = step.number + 2 ** 21; /* the next step in its place */
    assert.strictEqual(site.run(() => { native.end(next); return 5; }), 5);
    assert.throws(() => native.end(next), { code: 'EBB_E_STALE' });
  },

  'a function has no arguments and no object, and may be of another context'() {
    const site = new ebb.Site('called');
    const step = site.begin();
    const tell = function (...given) { return [this, given]; };
    const other = vm.runInNewContext('() => { throw new RangeError("theirs"); }');
    for (const place of [site, step]) {
      assert.deepStrictEqual(place.run(tell), [undefined, []]);
      assert.throws(() => place.run(other), { name: 'RangeError', message: 'theirs' });
      for (const wrong of [undefined, null, 5, 'x', {}])
        assert.throws(() => place.run(wrong), TypeError);
    }
    step.end();
    assert.throws(() => step.run(() => assert.fail('it ran')), { code: 'EBB_E_STALE' });
  },

  async 'what a function returns is a promise, if it waits'() {
    const site = new ebb.Site('promises');
    const step = site.begin();
    const order = [];
    const wait = async () => { order.push('begun'); await null; order.push('went on'); return 5; };
    for (const place of [site, step]) {
      const promise = place.run(wait);
      order.push('returned');
      assert.strictEqual(await promise, 5);
      assert.deepStrictEqual(order.splice(0), ['begun', 'returned', 'went on']);
    }
    step.end();
  },

  'a tag is a whole number'() {
    const site = new ebb.Site('tags');
    const wrong = { '-1': -1, '1.5': 1.5, NaN: NaN, Infinity: Infinity, '1e+300': 1e300, "'7'": '7',
      null: null, '5n': 5n, '[ 3 ]': [3], 'Symbol(x)': Symbol('x'),
      '[Object: null prototype] {}': Object.create(null) };
    for (const [said, tag] of Object.entries(wrong)) {
      const refusal = { name: 'RangeError',
        message: `a tag is a whole number from 0 to 2^53 - 1, not ${said}` };
      assert.throws(() => site.begin(tag), refusal);
      assert.throws(() => site.run(() => 0, tag), refusal);
    }
    site.run(() => 0, Number.MAX_SAFE_INTEGER);
  },

  "a site's name is text without NUL"() {
    for (const [said, name] of [['5', 5], ["[ 'x' ]", ['x']], ['Symbol(x)', Symbol('x')]])
      assert.throws(() => new ebb.Site(name),
        { name: 'TypeError', message: `a site's name is text, not ${said}` });
    for (const [place, name] of [[0, '\0'], [1, 'a\0b'], [40, `${'x'.repeat(40)}\0`]])
      assert.throws(() => new ebb.Site(name),
        { name: 'TypeError', message: new RegExp(`^a site's name has no NUL, .* at ${place}$`) });
  },

  'a step that its own function ends is left without a word'() {
    const site = new ebb.Site('inside');
    const endInside = (then) => {
      const step = site.begin();
      return step.run(() => { work(); step.end(); return then(); });
    };
    assert.strictEqual(endInside(() => 5), 5);
    assert.throws(() => endInside(() => { throw new RangeError('no'); }), RangeError);
  },

  async 'steps interleave, and end in any order'() {
    const site = new ebb.Site('waiting');
    const request = async (i) => {
      const step = site.begin(i % 3);
      const first = step.run(() => work(100 + i));
      await new Promise((resolve) => setTimeout(resolve, (i * 7919) % 20));
      const second = step.run(() => work(200 + i));
      step.end();
      return first.length + second.length;
    };
    const sums = await Promise.all(Array.from({ length: 300 }, (_, i) => request(i)));
    sums.forEach((sum, i) => assert.strictEqual(sum, 300 + 2 * i));
  },

  'ten thousand steps are open at once'() {
    const site = new ebb.Site('many');
    const steps = Array.from({ length: 10000 }, () => site.begin());
    assert.strictEqual(new Set(steps.map((step) => step.number)).size, 10000);
    steps.forEach((step, i) => { if (i % 100 === 0) step.run(() => work(64)); });
    for (const step of steps.filter((_, i) => i % 2)) step.end();
    for (const step of steps.filter((_, i) => i % 2 === 0)) step.end();
    for (const step of steps) assert.throws(() => step.end(), { code: 'EBB_E_STALE' });
  },

  'what has ended is found out'() {
    const site = new ebb.Site('ended');
    const step = site.begin();
    step.end();
    const next = site.begin(); // has the same place
    for (const call of ['end', 'enter', 'leave'])
      assert.throws(() => step[call](), { code: 'EBB_E_STALE' });
    next.enter();
    next.enter();
    next.leave();
    next.leave();
    next.end();
  },

  'what is no step, site or name is refused'() {
    const native = require(`${folder}/ebb_scope.node`);
    for (const wrong of [undefined, null, 'x', {}, [], Symbol('x')])
      for (const call of ['end', 'enter', 'leave', 'run'])
        assert.throws(() => native[call](wrong, work), TypeError);
    for (const wrong of [-1, 0, 1, 2 ** 20, 2 ** 53 - 1, -(2 ** 53), NaN, Infinity])
      assert.throws(() => native.end(wrong), { code: 'EBB_E_STALE' });
    for (const wrong of [undefined, null, 5, {}, [], Symbol('x')])
      assert.throws(() => new ebb.Site(wrong), TypeError);
    const site = native.makeSite('x');
    for (const wrong of [undefined, null, 'x', {}, Symbol('x')]) {
      assert.throws(() => native.begin(site, wrong), TypeError);
      assert.throws(() => native.begin(wrong, 0), TypeError);
      assert.throws(() => native.runNew(site, work, wrong), TypeError);
      assert.throws(() => native.runNew(wrong, work, 0), TypeError);
      assert.throws(() => native.dropSite(wrong), TypeError);
    }
    assert.throws(() => native.end(site), { code: 'EBB_E_STALE' });
    const step = native.begin(site, 0);
    assert.throws(() => native.begin(step, 0), { code: 'EBB_E_STALE' });
    native.dropSite(site);
    assert.throws(() => native.dropSite(site), { code: 'EBB_E_STALE' });
    assert.throws(() => native.begin(site, 0), { code: 'EBB_E_STALE' });
    native.end(step);
    assert.throws(() => ebb.Site('x'), TypeError);
    assert.throws(() => ebb.Site.call({}, 'x'), TypeError);
    assert.throws(() => new ebb.Site(), TypeError);
    new ebb.Site('x'.repeat(1000)).run(work);
  },

  async 'what another has made is no site'() {
    const { begin, run: runIn } = ebb.Site.prototype;
    const site = new ebb.Site('real');
    const external = await externalOf();
    for (const wrong of [external, Object.create(site), Object.create(ebb.Site.prototype), {},
      globalThis, undefined, process.stdout._handle]) {
      assert.throws(() => begin.call(wrong, 0), TypeError);
      assert.throws(() => runIn.call(wrong, work, 0), TypeError);
    }
    for (const field of Object.keys(site)) site[field] = external;
    assert.strictEqual(site.run(() => 5), 5);
  },

  'sites that nobody has any more do not pile up'() {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['-e', GROWS, folder],
      { encoding: 'utf8' });
    assert.strictEqual(status, 0, stderr);
    assert.ok(Number(stdout) < 250, `${stdout} MB`); // of 760, if none was collected
  },

  'the package can be loaded again'() {
    const other = loadAgain(folder);
    assert.notStrictEqual(other, ebb);
    const steps = [ebb, other].map((each) => new each.Site('loaded').begin());
    steps[0].run(() => steps[1].run(() => steps[0].run(work)));
    for (const step of steps) step.end();
    for (const step of steps) assert.throws(() => step.end(), { code: 'EBB_E_STALE' });
  },

  'what npm packs is the package'() {
    if (served) return; // once is enough
    const npm = spawnSync('npm', ['pack', '--dry-run', '--json', '--offline', '--logs-max=0'],
      { cwd: folder, encoding: 'utf8' });
    if (npm.error) return; // there is none
    assert.deepStrictEqual(JSON.parse(npm.stdout)[0].files.map(({ path }) => path).sort(),
      ['ebb_scope.node', 'index.js', 'package.json']);
  },

  async 'a thread has its own steps'() {
    const open = new ebb.Site('main').begin();
    const worker = new Worker(__filename, { argv: [folder, served],
      workerData: { folder, number: open.number } });
    const [code] = await require('events').once(worker, 'exit');
    assert.strictEqual(code, 0);
    open.run(work);
    open.end();
  },

  async 'the first steps of threads differ, in copies of the package and one after the other'() {
    const once = require('events').once;
    const numbers = [];
    const tell = async (copy) => {
      const worker = new Worker(TELLS, { eval: true, workerData: copy });
      const exit = once(worker, 'exit');
      numbers.push((await once(worker, 'message'))[0]);
      await exit;
    };
    await withCopy(folder, async (one) => {
      await tell(one);
      await tell(one);
      await withCopy(folder, tell);
    });
    assert.strictEqual(new Set(numbers).size, 3, `numbers ${numbers}`);
  },

  async 'workers whose memory is full in a step end, and nothing else'() {
    require('v8').setFlagsFromString('--expose-gc'); // where it was seen
    for (let i = 0; i < 12; i++) {
      const worker = new Worker(FULL, { eval: true, workerData: folder,
        resourceLimits: { maxOldGenerationSizeMb: 6 } });
      const [why] = await require('events').once(worker, 'error');
      assert.strictEqual(why.code, 'ERR_WORKER_OUT_OF_MEMORY');
    }
  },
};

if (isMainThread) {
  run(tests);
} else {
  const native = require(`${workerData.folder}/ebb_scope.node`);
  assert.throws(() => native.end(workerData.number), { code: 'EBB_E_STALE' });
  const site = new ebb.Site('worker');
  for (let i = 0; i < 100; i++) site.run(work);
  site.begin().enter(); // and is left open
  new (loadAgain(workerData.folder).Site)('worker').begin().enter();
}
