// SPDX-License-Identifier: Apache-2.0
/*
 * test_where.js PACKAGE - which steps and sites there are, by TAP. libebb-malloc is preloaded
 * and tells its statistics at a socket, EBB_MALLOC_STATS.
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

const { loadAgain, run } = require('./tap.js');

const [folder] = process.argv.slice(2);
const ebb = require(folder);

/* Native code mallocs 4 MiB, and frees them. */
const allocate = () => { crypto.scryptSync('', '', 1, { N: 4096, r: 8, p: 1 }); };

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

function forever() {
  for (;;);
}

const tests = {
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
    require('v8').setFlagsFromString('--expose-gc');
    const collect = vm.runInNewContext('gc');
    const step = (() => new ebb.Site('only once').begin())();
    for (let i = 0; i < 3; i++) { collect(); await sleep(1); }
    step.run(allocate);
    assert.strictEqual((await tell())['only once'].scopes_open, '1');
    step.end();
    assert.strictEqual((await tell())['only once'], undefined);
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
