// Numbers, times and command lines as people read them.

const UNITS = ["B", "kB", "MB", "GB", "TB"];

export function bytes(count: number): string {
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

const encoder = new TextEncoder();

/** The size of a text as it is sent and stored: UTF-8. */
export function textBytes(text: string): number {
  return encoder.encode(text).length;
}

/** A limit as it is written: `256 MiB` where it is a whole number of them. */
export function binaryBytes(count: number): string {
  const units = ["GiB", "MiB", "KiB"];
  const at = units.findIndex((_, index) => count > 0 && count % 1024 ** (3 - index) === 0);
  return at < 0 ? bytes(count) : `${count / 1024 ** (3 - at)} ${units[at]}`;
}

/** The bytes that base64 text stands for. */
export function base64Bytes(text: string): number {
  return Math.max(0, Math.floor((text.length * 3) / 4) - (text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0));
}

export function milliseconds(ms: number): string {
  if (ms < 10) return ms.toFixed(1);
  return Math.round(ms).toLocaleString("en-US");
}

/** `3d 4h`, `2h 5m`, `40s`, in the reader's language: the two largest units. */
export function duration(seconds: number, language: string): string {
  const whole = Math.max(0, Math.floor(seconds));
  const parts: [number, string][] = [
    [Math.floor(whole / 86_400), "day"],
    [Math.floor(whole / 3600) % 24, "hour"],
    [Math.floor(whole / 60) % 60, "minute"],
    [whole % 60, "second"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  const shown = first < 0 ? parts.slice(-1) : parts.slice(first, first + 2).filter(([count]) => count > 0);
  return shown
    .map(([count, unit]) =>
      new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay: "narrow" }).format(count),
    )
    .join(" ");
}

export function clock(iso: string, language: string): string {
  return new Intl.DateTimeFormat(language, {
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    hourCycle: "h23",
  }).format(new Date(iso));
}

export function moment(iso: string, language: string): string {
  return new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "medium" }).format(new Date(iso));
}

/** The time of day, with the day where it is not today. */
export function when(iso: string, language: string): string {
  const date = new Date(iso);
  return date.toDateString() === new Date().toDateString() ? clock(iso, language) : moment(iso, language);
}

/** Whether a text begins with a plain word, rather than with a name or a quotation. */
export function isSentence(text: string): boolean {
  return /^\p{Ll}[\p{L}’']*(?=[ ,:;.]|$)/u.test(text);
}

/** A text of our own with a capital letter, where it stands alone. */
export function sentence(text: string): string {
  return isSentence(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
}

/** An argument as a shell would need it written. */
export function shellWord(word: string): string {
  return word !== "" && /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function shellLine(words: readonly string[]): string {
  return words.map(shellWord).join(" ");
}

/** JSON as people write it: a list of plain values stays on one line. */
export function tidyJson(value: unknown): string {
  const text = JSON.stringify(value, null, 2);
  return text.replace(/\[\n\s+((?:"[^"]*"|[\w.-]+)(?:,\n\s+(?:"[^"]*"|[\w.-]+))*)\n\s+\]/g, (_, items: string) => {
    return `[${items.replace(/,\n\s+/g, ", ")}]`;
  });
}

/** The value below which `part` of the numbers lie. */
export function quantile(numbers: readonly number[], part: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

/** What terminals take as colours and cursor moves. */
// oxlint-disable-next-line no-control-regex -- the escape character is what is looked for
const ANSI = /\u001b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;

export function stripAnsi(text: string): string {
  return text.replace(ANSI, "");
}
