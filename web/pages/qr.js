/**
 * QR codes (ISO/IEC 18004) for addresses: bytes, error correction M, versions 1 to 10, so up to 213 bytes.
 * `modules` gives rows of booleans, true where it is dark; `qrCode` draws them.
 */

import { svg } from "./dom.js";

/** By version: check bytes of a block, and the data bytes of each block. */
const BLOCKS = [
  [10, [16]], [16, [28]], [26, [44]], [18, [32, 32]], [24, [43, 43]], [16, [27, 27, 27, 27]], [18, [31, 31, 31, 31]],
  [22, [38, 38, 39, 39]], [22, [36, 36, 36, 37, 37]], [26, [43, 43, 43, 43, 44]],
];
const ALIGNED = [[], [6, 18], [6, 22], [6, 26], [6, 30], [6, 34], [6, 22, 38], [6, 24, 42], [6, 26, 46], [6, 28, 50]];
const MASKS = [
  (y, x) => (y + x) % 2 === 0,
  (y) => y % 2 === 0,
  (y, x) => x % 3 === 0,
  (y, x) => (y + x) % 3 === 0,
  (y, x) => (Math.floor(y / 2) + Math.floor(x / 3)) % 2 === 0,
  (y, x) => ((y * x) % 2) + ((y * x) % 3) === 0,
  (y, x) => (((y * x) % 2) + ((y * x) % 3)) % 2 === 0,
  (y, x) => (((y + x) % 2) + ((y * x) % 3)) % 2 === 0,
];
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

// -- check bytes: Reed-Solomon over GF(256) with x^8 + x^4 + x^3 + x^2 + 1 ------------------------------------------

function times(a, b) {
  let product = 0;
  for (let bit = 7; bit >= 0; bit--) product = (product << 1) ^ ((product >> 7) * 0x11d) ^ (((b >> bit) & 1) * a);
  return product;
}

/** The remainder of the data, as a polynomial, by the product of (x - 2^i). */
export function checkBytes(data, count) {
  let generator = [1];
  for (let i = 0, root = 1; i < count; i++, root = times(root, 2)) {
    generator = [...generator, 0].map((own, k) => own ^ (k ? times(generator[k - 1], root) : 0));
  }
  const rest = new Array(count).fill(0);
  for (const byte of data) {
    const lead = byte ^ rest.shift();
    rest.push(0);
    for (let i = 0; i < count; i++) rest[i] ^= times(generator[i + 1], lead);
  }
  return rest;
}

/** The bytes of the code in their order on it: the blocks take turns, first the data, then the check bytes. */
function codewords(bytes, version) {
  const [checks, sizes] = BLOCKS[version - 1];
  const bits = [];
  const put = (value, width) => { for (let i = width - 1; i >= 0; i--) bits.push((value >> i) & 1); };
  put(4, 4); // the mode: bytes
  put(bytes.length, version < 10 ? 8 : 16);
  for (const byte of bytes) put(byte, 8);
  const room = 8 * sum(sizes);
  put(0, Math.min(4, room - bits.length));
  while (bits.length % 8) bits.push(0);
  const data = [];
  for (let i = 0; i < bits.length; i += 8) data.push(parseInt(bits.slice(i, i + 8).join(""), 2));
  for (let pad = 0xec; data.length < sum(sizes); pad ^= 0xec ^ 0x11) data.push(pad);
  const blocks = sizes.map((size, i) => data.slice(sum(sizes.slice(0, i)), sum(sizes.slice(0, i + 1))));
  const turns = (parts) => Array.from({ length: Math.max(...parts.map((part) => part.length)) }, (_, i) => parts.map((part) => part[i])).flat();
  return [...turns(blocks), ...turns(blocks.map((block) => checkBytes(block, checks)))].filter((byte) => byte !== undefined);
}

/** A number followed by its remainder by a polynomial over GF(2), both in so many bits. */
export function withRemainder(value, width, polynomial) {
  let rest = value << width;
  for (let bit = 31; bit >= width; bit--) if ((rest >> bit) & 1) rest ^= polynomial << (bit - width);
  return (value << width) | rest;
}

export const formatBits = (mask) => withRemainder(mask, 10, 0x537) ^ 0x5412; // M has the two bits 00
export const versionBits = (version) => withRemainder(version, 12, 0x1f25);

// -- the picture -----------------------------------------------------------------------------------------------------

/** The patterns that are the same for all codes of a version; null where data may stand. */
function patterns(version) {
  const size = 17 + 4 * version;
  const grid = Array.from({ length: size }, () => new Array(size).fill(null));
  const square = (cy, cx, reach, dark) => {
    for (let y = -reach; y <= reach; y++) {
      for (let x = -reach; x <= reach; x++) {
        if (grid[cy + y]?.[cx + x] !== undefined) grid[cy + y][cx + x] = dark(Math.max(Math.abs(y), Math.abs(x)));
      }
    }
  };
  for (let i = 8; i < size - 8; i++) grid[6][i] = grid[i][6] = i % 2 === 0;
  for (const [y, x] of [[3, 3], [3, size - 4], [size - 4, 3]]) square(y, x, 4, (away) => away !== 2 && away !== 4);
  const centers = ALIGNED[version - 1];
  const last = centers.at(-1);
  for (const y of centers) {
    for (const x of centers) {
      const corner = (y === 6 && (x === 6 || x === last)) || (y === last && x === 6);
      if (!corner) square(y, x, 2, (away) => away !== 1);
    }
  }
  return grid;
}

/** Write which mask is used, twice, and the version where it is large. */
function describe(grid, version, mask) {
  const [size, bits] = [grid.length, formatBits(mask)];
  for (let i = 0; i < 15; i++) {
    const dark = ((bits >> i) & 1) === 1;
    const near = i < 6 ? [i, 8] : i < 8 ? [i + 1, 8] : i === 8 ? [8, 7] : [8, 14 - i];
    const far = i < 8 ? [8, size - 1 - i] : [size - 15 + i, 8];
    for (const [y, x] of [near, far]) grid[y][x] = dark;
  }
  grid[size - 8][8] = true;
  if (version < 7) return;
  for (let i = 0; i < 18; i++) {
    const [a, b] = [Math.floor(i / 3), size - 11 + (i % 3)];
    grid[a][b] = grid[b][a] = ((versionBits(version) >> i) & 1) === 1;
  }
}

/** Bits in columns of two, upwards and downwards from the right; the column of the timing pattern is left out. */
function fill(grid, bytes, mask) {
  const size = grid.length;
  let place = 0;
  for (let right = size - 1; right > 0; right -= 2) {
    if (right === 6) right = 5;
    const up = ((right + 1) & 2) === 0;
    for (let step = 0; step < size; step++) {
      const y = up ? size - 1 - step : step;
      for (const x of [right, right - 1]) {
        if (grid[y][x] !== null) continue;
        const bit = ((bytes[place >> 3] ?? 0) >> (7 - (place & 7))) & 1;
        grid[y][x] = (bit === 1) !== MASKS[mask](y, x);
        place++;
      }
    }
  }
}

/** How hard a code is to read: runs, squares, shapes like those of the corners, and too much or too little dark. */
function penalty(grid) {
  const lines = [...grid, ...grid.map((_, x) => grid.map((row) => row[x]))].map((line) => line.map(Number).join(""));
  const runs = lines.map((line) => sum([...line.matchAll(/0{5,}|1{5,}/g)].map(([run]) => run.length - 2)));
  const corners = lines.map((line) => [...line.matchAll(/(?=10111010000|00001011101)/g)].length);
  let squares = 0;
  for (let y = 1; y < grid.length; y++) {
    for (let x = 1; x < grid.length; x++) {
      if (grid[y][x] === grid[y][x - 1] && grid[y][x] === grid[y - 1][x] && grid[y][x] === grid[y - 1][x - 1]) squares++;
    }
  }
  const dark = sum(grid.flat().map(Number)) / grid.length ** 2;
  return sum(runs) + 3 * squares + 40 * sum(corners) + 10 * Math.floor(Math.abs(20 * dark - 10));
}

/** The code of a text as rows of booleans. */
export function modules(text) {
  const bytes = new TextEncoder().encode(text);
  const version = BLOCKS.findIndex(([, sizes], i) => 8 * sum(sizes) >= 4 + (i < 9 ? 8 : 16) + 8 * bytes.length) + 1;
  if (!version) throw new Error("the text is too long for a QR code of this size");
  const words = codewords(bytes, version);
  const drawn = MASKS.map((_, mask) => {
    const grid = patterns(version);
    describe(grid, version, mask);
    fill(grid, words, mask);
    return grid;
  });
  return drawn.reduce((best, one) => (penalty(one) < penalty(best) ? one : best));
}

const QUIET = 4; // light modules around the code

/** The picture of the code; `title` says in words what it is. */
export function qrCode(text, title) {
  const grid = modules(text);
  const size = grid.length + 2 * QUIET;
  const path = grid.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x + QUIET} ${y + QUIET}h1v1h-1z` : ""))).join("");
  return svg(
    "svg",
    { class: "qr", viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": title, "shape-rendering": "crispEdges" },
    svg("rect", { width: size, height: size, fill: "#fff" }),
    svg("path", { d: path, fill: "#000" }),
  );
}
