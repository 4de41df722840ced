import { expect, test } from "vitest";
import {
  base64Bytes,
  binaryBytes,
  bytes,
  duration,
  quantile,
  sentence,
  shellLine,
  stripAnsi,
  tidyJson,
} from "./format";

test("sizes and times are short", () => {
  expect([0, 999, 1000, 1_550_000, 140_000_000].map(bytes)).toEqual(["0 B", "999 B", "1.0 kB", "1.6 MB", "140 MB"]);
  expect([0, 59, 60, 3725, 90_000].map((seconds) => duration(seconds, "en"))).toEqual([
    "0s",
    "59s",
    "1m",
    "1h 2m",
    "1d 1h",
  ]);
  expect(base64Bytes("aGk=")).toBe(2);
  expect([268_435_456, 1_073_741_824, 1536, 1000, 0].map(binaryBytes)).toEqual([
    "256 MiB",
    "1 GiB",
    "1.5 kB",
    "1.0 kB",
    "0 B",
  ]);
});

test("a command line can be pasted into a shell", () => {
  expect(shellLine(["npx", "-y", "@a/b", "a b", "it's", ""])).toBe(`npx -y @a/b 'a b' 'it'\\''s' ''`);
});

test("quantiles are values that were measured", () => {
  expect([quantile([3, 1, 2], 0.5), quantile([1, 2, 3, 4], 0.95), quantile([], 0.5)]).toEqual([2, 4, 0]);
});

test("a message becomes a sentence, a name stays a name", () => {
  expect(sentence("the server exited")).toBe("The server exited");
  expect(sentence("`npx` was not found")).toBe("`npx` was not found");
  expect(sentence("npm_config is wrong")).toBe("npm_config is wrong");
});

test("escape sequences are taken out", () => {
  expect(stripAnsi("\u001b[1;31mx\u001b[0m\u001b(B")).toContain("x");
  expect(stripAnsi("\u001b[1;31mx\u001b[0m")).toBe("x");
});

test("a list of plain values stays on one line of JSON, and everything means the same", () => {
  const value = { a: ["x y", '"', "[\n]"], b: [1, 2], c: [{ d: [] }], e: ["one"] };
  expect(JSON.parse(tidyJson(value))).toEqual(value);
  expect(tidyJson({ args: ["mcp", "environments"], n: [1, 2] })).toBe(
    '{\n  "args": ["mcp", "environments"],\n  "n": [1, 2]\n}',
  );
});
