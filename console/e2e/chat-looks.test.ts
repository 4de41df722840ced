// The chat for everybody: axe in both themes and languages, on a phone, in Japanese.
import type { Page } from "playwright-core";
import { findings } from "./support/axe";
import { ask, card, finished, log, message, test, unfold } from "./support/chat";
import type { Daemon } from "./support/daemon";
import { type Model, gate } from "./support/model";
import { fits, named } from "./support/screen";
import { expect, until } from "./support/test";

const TEXT = [
  "## A heading\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- [x] ready\n- [ ] open\n\n",
  "```js\nlet x = 1;\n```\n\nSee [there](https://example.org/) and `code`.\n\n> quoted",
];

/** A conversation with all there is to see: text, cards that went well and not, the limit. */
async function talk(daemon: Daemon, model: Model): Promise<string> {
  await daemon.wayward("wild");
  await daemon.wayward("asleep", [], { enabled: false });
  model.says(
    { text: TEXT, calls: [{ name: "wild__fail" }, { name: "wild__structured" }] },
    ...Array.from({ length: 9 }, () => ({ calls: [{ name: "wild__pid" }] })),
  );
  const answer = await fetch(`${daemon.url}/api/v1/chat`, {
    method: "POST",
    headers: { Authorization: `Bearer ${daemon.token}`, "Content-Type": "application/json" },
    body: JSON.stringify({ message: "show all you can" }),
  });
  await answer.text();
  return answer.headers.get("x-conversation-id")!;
}

for (const theme of ["light", "dark"] as const) {
  test(`axe finds nothing in the chat, ${theme}`, async ({ daemon, model, open }) => {
    const id = await talk(daemon, model);
    const found: Record<string, string[]> = {};
    const look = async (page: Page, name: string) => {
      const problems = await findings(page);
      if (problems.length > 0) found[name] = problems;
    };
    const page = await open(`/chat/${id}`, { theme });
    await log(page).getByRole("alert").waitFor();
    await look(page, "limit");
    const failed = card(page, 1, "fail");
    await unfold(failed, "Arguments");
    await unfold(failed, "Flight recorder");
    await failed.getByRole("button", named("Replay")).waitFor();
    await unfold(card(page, 2, "structured"), "Result");
    await look(page, "open cards");
    await page.getByRole("button", { name: /^\d+ tools/ }).click();
    const tools = page.getByRole("dialog", named("Tools for this chat"));
    await tools.getByRole("button", { name: /^Tools\s+wild$/ }).click();
    await tools.getByRole("checkbox", named("pid")).waitFor();
    await look(page, "tools");
    await page.keyboard.press("Escape");
    await page.getByRole("button", named("Rename")).click();
    await page.getByRole("dialog").waitFor();
    await look(page, "rename");
    await page.goto("/chat");
    await message(page).waitFor();
    await look(page, "new");
    await page.goto("/settings");
    await page.getByRole("button", named("Test Test")).click();
    await page.getByText(/answered in/).waitFor();
    await look(page, "providers");
    await page.getByRole("button", named("Edit Test")).click();
    await page.getByRole("dialog").waitFor();
    await look(page, "provider");
    const phone = await open(`/chat/${id}`, { theme, lang: "ja", viewport: { width: 375, height: 760 }, touch: true });
    await phone.getByRole("log", named("会話")).getByRole("alert").waitFor();
    await look(phone, "phone");
    expect(found).toEqual({});
  });
}

test("the chat fits a phone, and the list is one tap away", async ({ daemon, model, open }) => {
  const id = await talk(daemon, model);
  const page = await open(`/chat/${id}`, { viewport: { width: 375, height: 760 }, touch: true });
  await log(page).getByRole("alert").waitFor();
  await fits(page);
  const failed = card(page, 1, "fail");
  await unfold(failed, "Flight recorder");
  await failed.getByRole("button", named("Replay")).waitFor();
  await fits(page);
  // The composer stands above the bar at the bottom, and the log between them and the title.
  const box = async (role: "textbox" | "navigation", name: string) =>
    (await page.getByRole(role, named(name)).boundingBox())!;
  const composer = await box("textbox", "Message");
  const bar = await box("navigation", "Main");
  expect(composer.y + composer.height).toBeLessThan(bar.y);
  expect(composer.y + composer.height).toBeGreaterThan(bar.y - 100);
  await page.getByRole("button", named("Conversations")).tap();
  const list = page.getByRole("dialog", named("Conversations"));
  await list.getByRole("link", { name: /^show all you can/ }).waitFor();
  await list.getByRole("link", named("New chat")).tap();
  await page.getByRole("heading", { level: 1, ...named("Chat") }).waitFor();
  await message(page).fill("from a phone");
  await page.getByRole("button", named("Send")).tap();
  await log(page).getByText("from a phone", { exact: true }).waitFor();
  await finished(page);
  await fits(page);
});

test("while the daemon is away the chat still fits the window", async ({ daemon, model, open }) => {
  const id = await talk(daemon, model);
  const page = await open(`/chat/${id}`, { forgive: /ERR_/ });
  await log(page).getByRole("alert").waitFor();
  await daemon.kill();
  await page.getByText("Cofer is not answering").waitFor();
  const bottom = async () => {
    const box = (await message(page).boundingBox())!;
    return box.y + box.height;
  };
  await until(bottom).toBeLessThan(900);
  expect(await page.evaluate(() => document.documentElement.scrollHeight)).toBe(900);
  await daemon.run();
  await page.getByText("Live", { exact: true }).waitFor();
});

test("the chat speaks Japanese, word for word", async ({ daemon, model, open }) => {
  const id = await talk(daemon, model);
  const page = await open(`/chat/${id}`, { lang: "ja" });
  const japanese = page.getByRole("log", named("会話"));
  await page.getByRole("navigation", named("メイン")).getByRole("link", named("チャット")).waitFor();
  await page.getByRole("textbox", named("メッセージ")).waitFor();
  await page.getByRole("button", named("送信")).waitFor();
  const failed = japanese.getByRole("group", named("ツール呼び出し 1: fail"));
  await failed.getByText("エラー", { exact: true }).waitFor();
  await failed.getByRole("region", named("エラー詳細")).waitFor();
  const done = japanese.getByRole("group", named("ツール呼び出し 2: structured"));
  await done.getByText("完了", { exact: true }).waitFor();
  await unfold(done, "引数");
  await unfold(done, "結果");
  const alert = japanese.getByRole("alert", named("ツール呼び出しの上限に達しました（10/10 ステップ）"));
  model.otherwise = { calls: [{ name: "wild__hang" }] };
  await alert.getByRole("button", named("続行")).click();
  const hanging = japanese.getByRole("group", { name: /^ツール呼び出し \d+: hang$/ });
  await hanging.getByText("実行中", { exact: true }).waitFor();
  await page.getByRole("button", named("停止")).click();
  await until(() => hanging.getByRole("progressbar").count()).toBe(0);
});

test("what was read stays in sight while more comes, and the end is one click away", async ({ model, open }) => {
  const lines = Array.from({ length: 120 }, (_, n) => `line ${n}\n\n`);
  model.says({ text: lines });
  const page = await open("/chat");
  await ask(page, "many lines");
  await log(page).getByText("line 119").waitFor();
  await finished(page);
  const place = () => log(page).evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);
  await until(place).toBeLessThan(50);
  const more = gate();
  model.says({ text: ["A beginning.\n\n", ...lines], hold: more.opened });
  // Who sends a message is taken to it, wherever they were.
  await log(page).evaluate((box) => box.scrollTo({ top: 0 }));
  await ask(page, "more lines");
  await log(page).getByText("A beginning.").waitFor();
  await until(place).toBeLessThan(50);
  await log(page).evaluate((box) => box.scrollTo({ top: 0 }));
  await page.getByRole("button", named("Jump to the end")).waitFor();
  more.open();
  await finished(page);
  await until(() => log(page).getByText("line 119").count()).toBe(2);
  expect(await log(page).evaluate((box) => box.scrollTop)).toBe(0);
  await page.getByRole("button", named("Jump to the end")).click();
  await until(place).toBeLessThan(50);
});
