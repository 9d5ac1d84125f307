// SPDX-License-Identifier: Apache-2.0
/*
 * index.js - request scopes for Node, where libebb-malloc is preloaded; elsewhere they do nothing.
 *
 *     const ebb = require('ebb-scope');
 *     const site = new ebb.Site('request');
 *
 *     site.run(() => model.runSync(input));    // what native code mallocs is the request's
 *
 *     const step = site.begin();                 // a request that waits: others run meanwhile
 *     const answer = await step.run(() => start(request));    // entered while the function runs
 *     step.run(() => finish(answer));
 *     step.end();
 *
 * A step belongs to the thread that began it. What V8 allocates is not malloc's and stays out of
 * it; buffers' contents and native code are in it. Memory that lives on when a step ends stays
 * valid.
 */
'use strict';

const util = require('util');
const vm = require('vm');

/* One for all copies of this version, whose steps nest in each other: it knows in which order. It
 * is kept where all contexts of a thread look: each has a global object of its own. */
const shared = Symbol.for(`ebb-scope ${require('./package.json').version}`);
const native = util[shared] ?? require('./ebb_scope.node');
Reflect.defineProperty(util, shared, { value: native, configurable: true });

/* Sites that are collected are dropped when the event loop turns, all others when their thread
 * ends. A registry that is collected, too, calls nobody: so it is kept where all loads find it, and
 * is of the thread's own context, to keep no other. */
native.collected ??= new (vm.runInThisContext('FinalizationRegistry'))(native.dropSite);

/** One request. begin() leaves it: nothing is allocated in it until enter() or run(). */
class Step {
  constructor(number) {
    this.number = number;
  }

  /** malloc() of this thread allocates in the step from now on. */
  enter() {
    native.enter(this.number);
  }

  /** And where it did before. To be called before anything is waited for. */
  leave() {
    native.leave(this.number);
  }

  /**
   * Calls the function in the step; returns what it does, a promise, too. Afterwards those steps
   * are entered that were before, in the same order, so malloc() allocates where it did before:
   * what was entered meanwhile is left. Only what was left or ended meanwhile stays so, and what was
   * entered before and is entered by hand once more stays inside of all but the one that malloc()
   * served. So it is however the function ends: also if its script is terminated.
   */
  run(work) {
    return native.run(this.number, work);
  }

  /** Throws an error with the code EBB_E_STALE if it has ended before. */
  end() {
    native.end(this.number);
  }
}

function whole(tag) {
  if (Number.isSafeInteger(tag) && tag >= 0) return tag;
  throw new RangeError(`a tag is a whole number from 0 to 2^53 - 1, not ${util.inspect(tag)}`);
}

function text(name) {
  if (typeof name !== 'string')
    throw new TypeError(`a site's name is text, not ${util.inspect(name)}`);
  const end = name.indexOf('\0');
  if (end < 0) return name;
  throw new TypeError(`a site's name has no NUL, as ${util.inspect(name)} has at ${end}`);
}

/** A place of the program that is passed again and again, by its name. */
class Site {
  #number;

  /** The name is cut to 31 bytes. */
  constructor(name) {
    this.#number = native.makeSite(text(name));
    native.collected.register(this, this.#number);
  }

  /** A new step, not entered. Requests of one `tag` are expected to be alike. */
  begin(tag = 0) {
    const step = new Step(0); // first, so that nothing can fail once the step is there
    step.number = native.begin(this.#number, whole(tag));
    return step;
  }

  /** Calls the function, which does not wait, in a step of its own, which ends however it does. */
  run(work, tag = 0) {
    return native.runNew(this.#number, work, whole(tag));
  }
}

module.exports = { Site, Step, isServed: native.isServed };
