// Packs files into a zip archive, without compression. The same files make the same bytes, whose digest names them.

const CRC = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

function crc32(bytes) {
  let found = 0xffffffff;
  for (const byte of bytes) found = CRC[(found ^ byte) & 0xff] ^ (found >>> 8);
  return ~found >>> 0;
}

// Fields are [value, size in bytes], the least significant byte first.
const packed = (...fields) => fields.flatMap(([value, size]) => Array.from({ length: size }, (_, at) => (value >>> (8 * at)) & 0xff));

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;
const VERSION = 20;
const UTF8 = 0x800;
const DATE = 0x21; // 1980-01-01, the first that the format knows

// Takes [name, Uint8Array] of each file.
export function zipped(files) {
  const parts = [];
  const directory = [];
  let at = 0;
  const add = (...pieces) => pieces.forEach((piece) => (parts.push(piece), (at += piece.length)));
  for (const [name, content] of [...files].sort(([one], [other]) => (one < other ? -1 : 1))) {
    const encoded = new TextEncoder().encode(name);
    const common = packed(
      [VERSION, 2], [UTF8, 2], [0, 2], [0, 2], [DATE, 2], [crc32(content), 4], [content.length, 4], [content.length, 4],
      [encoded.length, 2], [0, 2],
    );
    directory.push([...packed([CENTRAL, 4], [VERSION, 2]), ...common, ...packed([0, 2], [0, 2], [0, 2], [0, 4], [at, 4]), ...encoded]);
    add(packed([LOCAL, 4]), common, encoded, content);
  }
  const start = at;
  directory.forEach((entry) => add(entry));
  const count = directory.length;
  add(packed([END, 4], [0, 2], [0, 2], [count, 2], [count, 2], [at - start, 4], [start, 4], [0, 2]));
  const archive = new Uint8Array(at);
  let place = 0;
  for (const part of parts) {
    archive.set(part, place);
    place += part.length;
  }
  return archive;
}
