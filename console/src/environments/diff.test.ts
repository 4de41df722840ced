import { expect, test } from "vitest";
import { filesOf } from "./diff";

const TEXT = `diff --git a/README b/README
index ce01362..2e0996a 100644
--- a/README
+++ b/README
@@ -1 +1,2 @@
 hello
--- not a head
+more
diff --git a/old name b/old name
deleted file mode 100644
index 1..0
--- a/old name
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/logo.png b/logo.png
new file mode 100644
index 0..1
Binary files /dev/null and b/logo.png differ
diff --git a/a b/b
similarity index 100%
rename from a
rename to b
`;

test("a diff is taken apart by file", () => {
  expect(filesOf(TEXT).map(({ path }) => path)).toEqual(["README", "old name", "logo.png", "b"]);
  expect(filesOf(TEXT).map(({ endsAt }) => endsAt)).toEqual([8, 15, 19, 23]);
  expect(filesOf("")).toEqual([]);
});

test("lines are told by what they say, and a removed line of dashes is no head", () => {
  const [readme, , picture] = filesOf(TEXT);
  expect(readme!.lines.map(({ kind }) => kind)).toEqual([
    "head",
    "head",
    "head",
    "head",
    "place",
    "same",
    "removed",
    "added",
  ]);
  expect(picture!.lines.every(({ kind }) => kind === "head")).toBe(true);
});
