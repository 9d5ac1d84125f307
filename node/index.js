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

/** One request. begin() leaves it: nothing is allocated in it until enter() or run(). */
class Step {
  constructor(number, site) {
    this.number = number;
    this.site = site; // which could not go while the step is open, and would not be asked again
    this.ended = false;
  }

  /** malloc() of this thread allocates in the step from now on. */
  enter() {
    native.enter(this.number);
  }

  /** And where it did before. To be called before anything is waited for. */
  leave() {
    native.leave(this.number);
  }

  /** Calls the function in the step; returns what it does, a promise, too. */
  run(work) {
    native.enter(this.number);
    try {
      return work();
    } finally {
      if (!this.ended) native.leave(this.number); // whose error would hide the function's own
    }
  }

  /** Throws an error with the code EBB_E_STALE if it has ended before. */
  end() {
    native.end(this.number);
    this.ended = true;
  }
}

/** A place of the program that is passed again and again. */
class Site {
  constructor(name) {
    this.site = native.site(name);
  }

  /** A new step, not entered. Requests of one `tag` are expected to be alike. */
  begin(tag = 0) {
    const number = native.begin(this.site, tag);
    native.leave(number);
    return new Step(number, this.site);
  }

  /** Calls the function, which does not wait, in a step of its own. */
  run(work, tag = 0) {
    const number = native.begin(this.site, tag);
    try {
      return work();
    } finally {
      native.end(number);
    }
  }
}

module.exports = { Site, Step, isServed: native.isServed };
