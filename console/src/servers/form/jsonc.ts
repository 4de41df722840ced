// JSON as people keep it in settings files: with comments and trailing commas.
import type { TFunction } from "i18next";

/** Plain JSON of the same length, so that places in it are places in the text. */
export function toJson(text: string): string {
  const out =
    [...text].length === text.length ? text.split("") : Array.from({ length: text.length }, (_, index) => text[index]!);
  let index = 0;
  while (index < text.length) {
    if (text[index] === '"') index = endOfString(text, index);
    else if (text.startsWith("//", index)) index = blank(out, index, endOf(text, "\n", index));
    else if (text.startsWith("/*", index)) index = blank(out, index, endOf(text, "*/", index + 2));
    else index += 1;
  }
  dropTrailingCommas(out, text.length);
  return out.join("");
}

function endOfString(text: string, start: number): number {
  let index = start + 1;
  while (index < text.length && text[index] !== '"') index += text[index] === "\\" ? 2 : 1;
  return index + 1;
}

function endOf(text: string, mark: string, from: number): number {
  const at = text.indexOf(mark, from);
  return at < 0 ? text.length : at + (mark === "\n" ? 0 : mark.length);
}

function blank(out: string[], from: number, to: number): number {
  for (let index = from; index < to; index += 1) if (out[index] !== "\n") out[index] = " ";
  return to;
}

function dropTrailingCommas(out: string[], length: number): void {
  const text = out.join("");
  let comma = -1;
  for (let index = 0; index < length; index += 1) {
    const char = text[index]!;
    if (char === '"') {
      index = endOfString(text, index) - 1;
      comma = -1;
    } else if (char === ",") comma = index;
    else if ((char === "}" || char === "]") && comma >= 0) out[comma] = " ";
    if (char !== "," && !/\s/.test(char)) comma = -1;
  }
}

/** Where a text stops being JSON: what stands there, or null where the text ends too early. */
export type JsonProblem = { found: string | null; line: number; column: number };

/** The value, or where the text stops being JSON. */
export function parseJson(text: string): { value: unknown } | { problem: JsonProblem } {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { problem: problemAt(text, breakOf(text)) };
  }
}

/** Every browser words its error differently, and some do not name the place: it is looked for here. */
function breakOf(text: string): number {
  try {
    return skipSpace(text, skipValue(text, skipSpace(text, 0)));
  } catch (stop) {
    if (stop instanceof Break) return stop.at;
    throw stop;
  }
}

class Break {
  readonly at: number;
  constructor(at: number) {
    this.at = at;
  }
}

const skipSpace = (text: string, from: number) => match(text, from, /[ \t\r\n]*/y);
// oxlint-disable-next-line no-control-regex -- JSON forbids them in strings
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const PLAIN = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

function match(text: string, from: number, pattern: RegExp): number {
  pattern.lastIndex = from;
  if (!pattern.test(text)) throw new Break(from);
  return pattern.lastIndex;
}

function skipValue(text: string, from: number): number {
  if (text[from] === "{") return skipMembers(text, from, "}");
  if (text[from] === "[") return skipMembers(text, from, "]");
  return match(text, from, text[from] === '"' ? STRING : PLAIN);
}

/** The members of an object or a list, from its opening to behind its end. */
function skipMembers(text: string, from: number, end: string): number {
  let at = skipSpace(text, from + 1);
  if (text[at] === end) return at + 1;
  for (;;) {
    if (end === "}") {
      at = skipSpace(text, match(text, at, STRING));
      if (text[at] !== ":") throw new Break(at);
      at = skipSpace(text, at + 1);
    }
    at = skipSpace(text, skipValue(text, at));
    if (text[at] === end) return at + 1;
    if (text[at] !== ",") throw new Break(at);
    at = skipSpace(text, at + 1);
  }
}

function problemAt(text: string, at: number): JsonProblem {
  const before = text.slice(0, at).split("\n");
  const found = /^(?:[\w.+-]{1,20}|[^])/u.exec(text.slice(at))?.[0] ?? null;
  return { found, line: before.length, column: (before.at(-1)?.length ?? 0) + 1 };
}

/** The problem in words. */
export function jsonWords({ found, line, column }: JsonProblem, t: TFunction): string {
  return found === null ? t("common.jsonEnds", { line, column }) : t("common.jsonUnexpected", { found, line, column });
}
