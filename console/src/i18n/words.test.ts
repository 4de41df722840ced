import { expect, test } from "vitest";
import { en } from "./en";
import { ja } from "./ja";

type Tree = { [key: string]: string | Tree };

function leaves(tree: Tree, at = ""): Map<string, string> {
  return new Map(
    Object.entries(tree).flatMap(([key, value]) =>
      typeof value === "string" ? [[`${at}${key}`, value] as const] : [...leaves(value, `${at}${key}.`)],
    ),
  );
}

const english = leaves(en as unknown as Tree);
const japanese = leaves(ja as unknown as Tree);
const holes = (text: string) => [...text.matchAll(/\{\{(\w+)\}\}/g)].map((match) => match[1]).toSorted();

/** Japanese has one form where English has two. */
const plural = (key: string) => key.replace(/_one$/, "_other");

test("both languages have the same words", () => {
  expect([...japanese.keys()].toSorted()).toEqual([...new Set([...english.keys()].map(plural))].toSorted());
});

test("a text takes the same values in both languages", () => {
  const different = [...english]
    .filter(([key, text]) => holes(text).join() !== holes(japanese.get(plural(key)) ?? "").join())
    .map(([key]) => key);
  expect(different).toEqual([]);
});

test("no text is empty, and Japanese texts are Japanese", () => {
  expect([...english, ...japanese].filter(([, text]) => text.trim() === "")).toEqual([]);
  const same = [...english]
    .filter(([key, text]) => japanese.get(key) === text && /[a-z]{4}/i.test(text.replace(/\{\{\w+\}\}/g, "")))
    .map(([key]) => key);
  // Names and words that are the same in both.
  expect(same.toSorted()).toEqual(
    [
      "app.name",
      "app.title",
      "connect.names.claude",
      "connect.names.cursor",
      "connect.names.vscode",
      "form.providers.gvisor",
      "form.providers.podman",
      "logs.stderr",
      "logs.stdout",
      "overview.isolationKeys.seccomp",
      "paste.label",
      "run.json",
      "run.nullShort",
      "run.asJson",
    ]
      .filter((key) => same.includes(key))
      .toSorted(),
  );
});

test("the contract's words are there, letter by letter", () => {
  expect(en.status).toMatchObject({ ready: "Connected", stopped: "Stopped", error: "Error", starting: "Starting…" });
  expect(ja.status).toMatchObject({ ready: "接続済み", stopped: "停止", error: "エラー", starting: "起動中…" });
  expect(en.form.messages.nameTaken).toBe("A server named “{{name}}” already exists");
  expect(ja.form.messages.commandNotFound).toBe("コマンド「{{command}}」が PATH に見つかりません");
});

test("the chat's words are there, letter by letter", () => {
  expect(en.chat).toMatchObject({
    log: "Conversation",
    message: "Message",
    send: "Send",
    call: "Tool call {{n}}: {{tool}}",
    arguments: "Arguments",
    result: "Result",
    error: "Error details",
    limit: "Tool call limit reached ({{steps}} of {{limit}} steps)",
    continue: "Continue",
  });
  expect(en.chat.status).toMatchObject({ running: "Running", done: "Done", error: "Error" });
  expect(ja.chat).toMatchObject({
    log: "会話",
    message: "メッセージ",
    send: "送信",
    call: "ツール呼び出し {{n}}: {{tool}}",
    arguments: "引数",
    result: "結果",
    error: "エラー詳細",
    limit: "ツール呼び出しの上限に達しました（{{steps}}/{{limit}} ステップ）",
    continue: "続行",
  });
  expect(ja.chat.status).toMatchObject({ running: "実行中", done: "完了", error: "エラー" });
});
