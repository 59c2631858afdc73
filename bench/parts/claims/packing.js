// Prints the bytes that strings take in the heap of V8, as they are and packed: two bytes of UTF-8 in one character.
const count = Number(process.argv[1]), length = 10000;

function text(wide) {
  const b = Buffer.alloc(length);
  for (let i = 0; i < length; i++) b[i] = 97 + Math.floor(Math.random() * 26);
  const s = b.toString('latin1');
  return wide ? Buffer.from(s.slice(1) + '\u4e2d', 'utf8').toString('utf8') : s; // one string, no rope of two
}

function pack(s) {
  let b = Buffer.from(s, 'utf8');
  if (b.length % 2) b = Buffer.concat([b, Buffer.from([0])]);
  return b.toString('utf16le');
}

function bytes(make) {
  gc();
  const before = process.memoryUsage().heapUsed, all = [];
  for (let i = 0; i < count; i++) all.push(make());
  gc();
  const used = (process.memoryUsage().heapUsed - before) / count;
  return all.length === count ? Math.round(used) : 0;
}

console.log(JSON.stringify([['ASCII', false], ['ASCII and one Chinese character', true]].map(([name, wide]) =>
  ({Name: name, Plain: bytes(() => text(wide)), Packed: bytes(() => pack(text(wide)))}))));
