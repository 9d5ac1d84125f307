// SPDX-License-Identifier: Apache-2.0
/* json_server.js - a list of words, sorted, by Node's http server. Prints `port N`; ends with
 * standard input. */
'use strict';

const server = require('http').createServer((request, response) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const words = JSON.parse(Buffer.concat(parts));
    words.sort((a, b) => a.key - b.key || a.text.length - b.text.length);
    const answer = Buffer.from(JSON.stringify(words));
    response.writeHead(200, { 'Content-Length': answer.length });
    response.end(answer);
  });
});
server.keepAliveTimeout = 0;
server.listen(0, '127.0.0.1', () => process.stdout.write(`port ${server.address().port}\n`));
process.stdin.on('end', () => process.exit(0)).resume();
