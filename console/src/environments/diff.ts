// Takes the text of `git diff` apart: by file, and each line by what it says.

export type DiffLine = { kind: "added" | "removed" | "place" | "head" | "same"; text: string };
/** `endsAt` is how many lines there are up to its end, with those of the files before it. */
export type FileDiff = { path: string; lines: DiffLine[]; endsAt: number };

/** The text by file, in its order. */
export function filesOf(text: string): FileDiff[] {
  let endsAt = 0;
  return text
    .split(/^(?=diff --git )/m)
    .filter((part) => part.startsWith("diff --git "))
    .map((part) => {
      const lines = linesOf(part);
      endsAt += lines.length;
      return { path: pathOf(part), lines, endsAt };
    });
}

/** The path that a file has now; of one that was removed, the one it had. */
function pathOf(part: string): string {
  const said = (prefix: string) => new RegExp(`^${prefix}(.+)$`, "m").exec(part)?.[1];
  const named = said("\\+\\+\\+ b/") ?? said("rename to ") ?? said("--- a/") ?? said('\\+\\+\\+ "b/');
  return named ?? /^diff --git a\/.* b\/(.*)$/m.exec(part)?.[1] ?? part.split("\n", 1)[0]!;
}

function linesOf(part: string): DiffLine[] {
  const lines = part.replace(/\n$/, "").split("\n");
  const body = lines.findIndex((line) => line.startsWith("@@"));
  return lines.map((text, index) => ({ kind: body < 0 || index < body ? "head" : kindOf(text), text }));
}

function kindOf(line: string): DiffLine["kind"] {
  if (line.startsWith("+")) return "added";
  if (line.startsWith("-")) return "removed";
  return line.startsWith("@@") ? "place" : "same";
}
