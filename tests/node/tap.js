// SPDX-License-Identifier: Apache-2.0
/*
 * tap.js - runs tests, an object of functions by their names, and tells by TAP.
 */
'use strict';

const fs = require('fs');

async function run(tests) {
  console.log(`1..${Object.keys(tests).length}`);
  let number = 0;
  for (const [name, test] of Object.entries(tests)) {
    number++;
    try {
      await test();
      console.log(`ok ${number} ${name}`);
    } catch (why) {
      console.log(`not ok ${number} ${name}`);
      console.log(String(why.stack).replace(/^/gm, '# '));
      process.exitCode = 1;
    }
  }
}

/** The package once more, as what reloads code has it: with a cache that forgot it. */
function loadAgain(folder) {
  for (const file of [folder, `${folder}/ebb_scope.node`])
    delete require.cache[require.resolve(file)];
  delete require('util')[Symbol.for(`ebb-scope ${require(`${folder}/package.json`).version}`)];
  return require(folder);
}

/** What `use` makes of a copy of the package, which is there so long. */
async function withCopy(folder, use) {
  const copy = fs.mkdtempSync(`${folder}-copy-`); // where it finds libebb, too
  try {
    for (const file of ['index.js', 'package.json', 'ebb_scope.node'])
      fs.copyFileSync(`${folder}/${file}`, `${copy}/${file}`);
    return await use(copy);
  } finally {
    fs.rmSync(copy, { recursive: true });
  }
}

module.exports = { run, loadAgain, withCopy };
