import i18next from "i18next";
import { expect, test } from "vitest";
import type { Validation } from "../../api/schema";
import { checkLocally, readValidation, translate, warningWords } from "./check";
import { emptyDraft, envRow, portRow } from "./draft";

const t = i18next.t;

test("required fields are named", () => {
  // covers: MGR-5
  expect(checkLocally(emptyDraft(), t)).toEqual({ name: "Name is required", command: "Command is required" });
  expect(checkLocally({ ...emptyDraft(), name: "x", kind: "container" }, t)).toEqual({ image: "Image is required" });
  expect(checkLocally({ ...emptyDraft(), name: "x", kind: "remote", url: "ftp://x" }, t)).toEqual({
    url: "This is not an http or https address",
  });
});

test("variables and ports are checked row by row", () => {
  const draft = {
    ...emptyDraft(),
    name: "x",
    command: "y",
    env: [envRow("A"), envRow("", "v"), envRow("A")],
    pids: "3x",
  };
  expect(Object.keys(checkLocally(draft, t))).toEqual(["resource_limits.pids", "env.1", "env.2"]);
  const ports = {
    ...emptyDraft(),
    name: "x",
    kind: "container" as const,
    image: "i",
    ports: [portRow("80", ""), portRow("0", ""), portRow("80", "70000")],
  };
  expect(Object.keys(checkLocally(ports, t))).toEqual(["ports.1", "ports.2"]);
});

test("requests at once are a number or auto", () => {
  const of = (maxInFlight: string) => checkLocally({ ...emptyDraft(), name: "x", command: "y", maxInFlight }, t);
  for (const fine of ["", "8", " auto "]) expect(of(fine)).toEqual({});
  expect(of("many")).toEqual({ max_in_flight: "This is neither a whole number nor auto" });
});

const answer: Validation = {
  errors: [
    { field: "name", message: "A server named “x” already exists", blocking: true },
    { field: "command", message: "Command “nope” was not found on PATH", blocking: false },
    { field: "environment.A=B", message: "a variable's name is not empty and has no `=`", blocking: true },
  ],
  warnings: [
    { field: "environment.API_KEY", message: "`API_KEY` looks like a secret: it is stored in plain text" },
    { field: "args[1]", message: "argument 2 looks like a secret: it is stored in plain text, and more" },
    { field: "resource_limits", message: "limits are not enforced" },
  ],
};

test("the daemon's answer stands at the fields it is about", () => {
  // covers: MGR-6, MGR-7, MGR-8
  const draft = { ...emptyDraft(), name: "x", command: "nope", env: [envRow("API_KEY", "1"), envRow("A=B", "2")] };
  const checked = readValidation(answer, draft, null, t);
  expect(checked.problems).toEqual({ name: "A server named “x” already exists", "env.1": answer.errors[2]!.message });
  expect(checked.mild).toEqual({ command: "Command “nope” was not found on PATH" });
  expect(checked.secrets).toEqual(["API_KEY", "Argument 2"]);
  expect(checked.warnings).toEqual(["limits are not enforced"]);
});

test("a server that is edited may keep its name", () => {
  const draft = { ...emptyDraft(), name: "x", command: "nope" };
  expect(readValidation(answer, draft, "x", t).problems.name).toBeUndefined();
  expect(readValidation(answer, { ...draft, name: "y" }, "x", t).problems.name).toBeDefined();
});

test("a prefix in use stands at its field, and a server does not clash with itself while it is renamed", () => {
  const message = "The prefix “gh” is in use by server “github”";
  const errors = [
    { field: "prefix", message, blocking: true },
    { field: "name", message: "The name “hub” is in use as the prefix of server “other”", blocking: true },
  ];
  const draft = { ...emptyDraft(), name: "hub", prefix: "gh" };
  const name = errors[1]!.message;
  expect(readValidation({ errors, warnings: [] }, draft, null, t).problems).toEqual({ prefix: message, name });
  expect(readValidation({ errors, warnings: [] }, draft, "github", t).problems).toEqual({ name });
});

test("what the daemon says most often is said in the reader's language", async () => {
  await i18next.changeLanguage("en");
  const { ja } = await import("../../i18n/ja");
  i18next.addResourceBundle("ja", "translation", ja);
  const japanese = i18next.getFixedT("ja");
  expect(translate({ field: "name", message: "A server named “ファイル” already exists" }, japanese)).toBe(
    "「ファイル」という名前のサーバーは既に存在します",
  );
  expect(translate({ field: "command", message: "Command “x” was not found on PATH" }, japanese)).toBe(
    "コマンド「x」が PATH に見つかりません",
  );
  expect(translate({ field: "x", message: "something new" }, japanese)).toBe("something new");
});

test("a warning is said in the reader's language where it is known", async () => {
  const { ja } = await import("../../i18n/ja");
  i18next.addResourceBundle("ja", "translation", ja);
  const japanese = i18next.getFixedT("ja");
  const header = "the header `X-Key` looks like a secret: it is stored in plain text in the data directory";
  expect(warningWords(header, t)).toMatch(/^X-Key looks like a secret\. /);
  expect(warningWords(header, japanese)).toMatch(/^X-Key: 機密情報のようです。/);
  expect(warningWords("plain http: everybody can read it", japanese)).toMatch(/^暗号化されない http/);
  const url = "`key` in the URL looks like a secret: URLs are shown and logged";
  expect([warningWords(url, japanese), warningWords("something new", japanese)]).toEqual([url, "something new"]);
});

test("headers are found by their name, and one name in two cases is one", () => {
  const headers = [envRow("X-Key", "a"), envRow("x-key", "b"), envRow("", "c")];
  const draft = { ...emptyDraft(), name: "x", kind: "remote" as const, url: "https://x", headers };
  expect(checkLocally(draft, t)).toEqual({
    "headers.1": "This name is used twice",
    "headers.2": "A header needs a name",
  });
  const error = { field: "headers.X-Key", message: "no", blocking: true };
  expect(readValidation({ errors: [error], warnings: [] }, draft, null, t).problems).toEqual({ "headers.0": "no" });
});
