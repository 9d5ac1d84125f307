// SPDX-License-Identifier: Apache-2.0
// mixed.js - objects, buffers, worker threads and the thread pool of Node; prints digests.
const crypto = require('crypto')
const fs = require('fs')
const zlib = require('zlib')
const { Worker } = require('worker_threads')

const sha = (data) => crypto.createHash('sha256').update(data).digest('hex')
const data = Array.from({ length: 20000 }, (_, i) => ({ i, s: 'x'.repeat(i % 97), l: [i, [i]] }))
console.log(sha(JSON.stringify(data)), sha(zlib.deflateSync(Buffer.alloc(3e6, 'abc'))))

const blocks = []
for (let i = 0; i < 20000; i++) blocks[i * 7919 % 500] = Buffer.alloc(i % 9000, i)
console.log(sha(Buffer.concat(blocks.filter(Boolean))))
console.log(crypto.pbkdf2Sync('a', 'b', 1000, 64, 'sha512').toString('hex'))
console.log([3, 1, 2].map(BigInt).sort().join(), /(?<y>\d{4})/u.exec('in 2026').groups.y)

const source = `
const { parentPort, workerData } = require('worker_threads')
const list = []
for (let i = 0; i < 50000; i++) list[i % 1000] = Buffer.allocUnsafe(i % 5000)
parentPort.postMessage(list.length + workerData)`
const work = (n) => new Promise((resolve) => {
  new Worker(source, { eval: true, workerData: n }).on('message', resolve)
})

async function main () {
  console.log((await Promise.all([1, 2, 3].map(work))).join())
  const packed = await new Promise((resolve, reject) =>
    zlib.gzip(Buffer.alloc(1e6, 'q'), (error, all) => error ? reject(error) : resolve(all)))
  console.log(zlib.gunzipSync(packed).length)
  const scrypt = (n) => new Promise((resolve) => crypto.scrypt('a', `${n}`, 32, (_, key) =>
    resolve(key.toString('hex'))))
  console.log(await Promise.all([1, 2, 3, 4, 5, 6].map(scrypt)))
  console.log((await fs.promises.readdir(__dirname)).sort().join())
}
main()
