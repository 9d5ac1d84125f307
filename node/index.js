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

const native = require('./ebb_scope.node');

let running = null; // whose run() this thread is in, the innermost one

/** One request. begin() leaves it: nothing is allocated in it until enter() or run(). */
class Step {
  constructor(number) {
    this.number = number;
    this.entered = false;
    this.ended = false;
  }

  /** malloc() of this thread allocates in the step from now on. */
  enter() {
    native.enter(this.number);
    this.entered = true;
  }

  /** And where it did before. To be called before anything is waited for. */
  leave() {
    native.leave(this.number);
    this.entered = false;
  }

  /**
   * Calls the function in the step; returns what it does, a promise, too. Afterwards the step is
   * entered if it was before, and so is the one whose run() this was called in.
   */
  run(work) {
    const [before, entered] = [running, this.entered];
    this.enter();
    running = this;
    try {
      return work();
    } finally {
      running = before;
      if (!entered && !this.ended) this.leave(); // whose error would hide the function's own
      if (before && before.entered && !before.ended) before.enter(); // the innermost again
    }
  }

  /** Throws an error with the code EBB_E_STALE if it has ended before. */
  end() {
    native.end(this.number);
    this.ended = true;
  }
}

function whole(tag) {
  if (Number.isSafeInteger(tag) && tag >= 0) return tag;
  throw new RangeError(`a tag is a whole number from 0 to 2^53 - 1, not ${tag}`);
}

/** A place of the program that is passed again and again, by its name. */
class Site extends native.Site {
  /** A new step, not entered. Requests of one `tag` are expected to be alike. */
  begin(tag = 0) {
    const step = new Step(0); // first, so that nothing can fail once the step is there
    step.number = super.begin(whole(tag));
    return step;
  }

  /** Calls the function, which does not wait, in a step of its own. */
  run(work, tag = 0) {
    const number = super.begin(whole(tag));
    native.enter(number);
    try {
      return work();
    } finally {
      native.end(number);
    }
  }
}

module.exports = { Site, Step, isServed: native.isServed };
