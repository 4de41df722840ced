// Puts what Vite built into embedded/, each file beside its compressed copies, where the daemon's
// build script finds it. index.html comes last: without it nothing is embedded.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const SOURCE = fileURLToPath(new URL("../dist/", import.meta.url));
const TARGET = fileURLToPath(new URL("../embedded/", import.meta.url));

const brotli = (bytes) =>
  brotliCompressSync(bytes, {
    params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
  });
const FORMS = { br: brotli, gz: (bytes) => gzipSync(bytes, { level: 9 }) };

for (const name of readdirSync(TARGET)) {
  if (name !== ".gitignore") rmSync(join(TARGET, name), { recursive: true });
}
const files = readdirSync(SOURCE, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
const paths = files.map((entry) => join(entry.parentPath, entry.name).slice(SOURCE.length));
for (const path of paths.toSorted((a, b) => Number(a === "index.html") - Number(b === "index.html"))) {
  const bytes = readFileSync(join(SOURCE, path));
  mkdirSync(dirname(join(TARGET, path)), { recursive: true });
  for (const [suffix, compress] of Object.entries(FORMS)) {
    const copy = compress(bytes);
    // Small files hardly shrink: then one form is enough.
    if (copy.length < bytes.length * 0.9) writeFileSync(join(TARGET, `${path}.${suffix}`), copy);
  }
  writeFileSync(join(TARGET, path), bytes);
}
