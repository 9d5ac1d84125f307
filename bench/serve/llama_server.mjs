// SPDX-License-Identifier: Apache-2.0
/*
 * llama_server.mjs FETCHED MODEL - llama.cpp, by node-llama-cpp, behind Node's http server.
 *
 * A request's tokens are read, and 8 more are made, the likeliest each time; the answer says which.
 * One request at a time: what llama.cpp computes together with others rounds otherwise, and the
 * answers must not depend on who came when.
 * FETCHED has node_modules. Prints `port N`; ends with standard input. The model runs on threads
 * of the library's own, where no request has a scope: there are none here.
 */
import http from 'node:http';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const MADE = 8, ANSWER = 16, CONTEXT = 2048;

const [fetched, file] = process.argv.slice(2);
const entry = path.join(fetched, 'node_modules', 'node-llama-cpp', 'dist', 'index.js');
const { getLlama, LlamaLogLevel } = await import(pathToFileURL(entry));

const llama = await getLlama({
  gpu: false, build: 'never', skipDownload: true, logLevel: LlamaLogLevel.error, maxThreads: 1,
});
const model = await llama.loadModel({ modelPath: file });
const context = await model.createContext({
  sequences: 1, contextSize: CONTEXT, batchSize: CONTEXT, threads: 1,
});
const sequence = context.getSequence();
let before = Promise.resolve();

async function compute(tokens) {
  const made = new Float32Array(ANSWER);
  let count = 0;
  await sequence.clearHistory();
  const options = { temperature: 0, yieldEogToken: true };
  for await (const token of sequence.evaluate(tokens, options)) {
    made[count++] = token;
    if (count === MADE) break;
  }
  return Buffer.from(made.buffer);
}

function answerOf(tokens) {
  before = before.then(() => compute(tokens));
  return before;
}

const server = http.createServer((request, response) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', async () => {
    const body = Buffer.concat(parts);
    const bytes = await answerOf([...new Int32Array(body.buffer, body.byteOffset,
                                                    body.length / 4)]);
    response.writeHead(200, { 'Content-Length': bytes.length });
    response.end(bytes);
  });
});
server.keepAliveTimeout = 0; // the client waits while others have their turns
server.listen(0, '127.0.0.1', () => process.stdout.write(`port ${server.address().port}\n`));
process.stdin.on('end', () => process.exit(0)).resume();
