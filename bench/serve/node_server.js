// SPDX-License-Identifier: Apache-2.0
/*
 * node_server.js FETCHED MODEL PACKAGE - onnxruntime-node behind Node's http server.
 *
 * FETCHED has node_modules; PACKAGE is that of ebb's scopes. Prints `port N`; ends with standard
 * input. SERVE_SCOPES: each request is a step. The library runs the model in a later turn of the
 * event loop, in one native call: the step is entered around that call, and while the answer is
 * made; requests interleave between. onnxruntime's arena is off.
 */
'use strict';

const http = require('http');
const path = require('path');

const [fetched, model, ebbScope] = process.argv.slice(2);
const modules = path.join(fetched, 'node_modules', 'onnxruntime-node');
const ort = require(modules);

function openSite() {
  if (process.env.SERVE_SCOPES !== '1') return null;
  const ebb = require(ebbScope);
  if (!ebb.isServed()) throw new Error('SERVE_SCOPES, but there is no libebb-malloc');
  return new ebb.Site('request');
}

/** The native call that runs a model, inside the step that its options name. */
function enterNativeRuns() {
  const { binding } = require(path.join(modules, 'dist', 'binding.js'));
  binding.InferenceSession = class extends binding.InferenceSession {
    run(feeds, fetches, options) {
      const { step, ...others } = options;
      return step.run(() => super.run(feeds, fetches, others));
    }
  };
}

async function answerOf(session, body, options) {
  const tokens = new Int32Array(body.buffer, body.byteOffset, body.length / 4);
  const feeds = { tokens: new ort.Tensor('int32', tokens, [tokens.length]) };
  const { data } = (await session.run(feeds, options)).answer;
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

function send(response, bytes) {
  response.writeHead(200, { 'Content-Length': bytes.length });
  response.end(bytes);
}

async function serve(session, site, body, response) {
  if (!site) {
    send(response, await answerOf(session, body, {}));
    return;
  }
  const step = site.begin();
  try {
    const bytes = await answerOf(session, body, { step });
    step.run(() => send(response, bytes));
  } finally {
    step.end();
  }
}

async function main() {
  const site = openSite();
  if (site) enterNativeRuns();
  const session = await ort.InferenceSession.create(model, {
    intraOpNumThreads: 1, interOpNumThreads: 1, enableCpuMemArena: false,
  });
  const server = http.createServer((request, response) => {
    const parts = [];
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      // A copy, aligned, as typed arrays want it.
      serve(session, site, Buffer.concat(parts), response).catch((why) => {
        process.stderr.write(`node-server: ${why.stack}\n`);
        process.exit(1);
      });
    });
  });
  server.keepAliveTimeout = 0; // the client waits while others have their turns
  server.listen(0, '127.0.0.1', () => process.stdout.write(`port ${server.address().port}\n`));
  process.stdin.on('end', () => process.exit(0)).resume();
}

main();
