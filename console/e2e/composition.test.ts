// Japanese input in every text field: a composition is taken, and the Enter that ends it does nothing else.
import type { Locator, Page } from "playwright-core";
import { log, message, test } from "./support/chat";
import type { Daemon } from "./support/daemon";
import { composeInto, composeIntoAll } from "./support/ime";
import { EVERYTHING, WAYWARD } from "./support/places";
import { named } from "./support/screen";
import { expect, until } from "./support/test";

const namesOf = async (daemon: Daemon) => (await daemon.servers()).map((server) => server.name);
const openFold = (where: Locator, title: string) => where.getByText(title, { exact: true }).click();

test("the list and the form of every kind of server", async ({ daemon, open }) => {
  await daemon.wayward("日本語サーバー", [], { enabled: false });
  const page = await open("/");
  expect(await composeInto(page, page.getByRole("searchbox", named("Search servers")), "日本語サーバー")).toBe(
    "日本語サーバー",
  );
  await page.getByRole("rowheader", named("日本語サーバー")).waitFor();
  await page.getByRole("button", named("Add server")).click();
  const form = page.getByRole("dialog", named("Add server"));
  const every = () => composeIntoAll(page, form);
  const more = ["Call timeout (ms)", "Start timeout (ms)", "Requests at once"];
  const limits = ["CPU (cores)", "Memory", "Disk", "Processes"];
  const heartbeat = ["Heartbeat every (ms)", "Heartbeat timeout (ms)"];

  await openFold(form, "More options");
  await form.getByRole("button", named("Add variable")).click();
  await form.getByRole("button", named("Show variable 1 value")).click();
  const variable = ["Variable 1 name", "Variable 1 value"];
  const program = ["Name", "Command", "Arguments (one per line)", "Description"];
  expect(await every()).toEqual([
    ...program,
    ...variable,
    "Prefix",
    "Working directory",
    ...more,
    ...heartbeat,
    ...limits,
  ]);

  await openFold(form, "Container image");
  await form.getByRole("button", named("Add port")).click();
  await form.getByRole("checkbox", named("Speaks MCP over stdin and stdout")).uncheck();
  expect(await every()).toEqual([
    "Name",
    "Image",
    "Arguments (one per line)",
    "Description",
    ...variable,
    "Volumes (one path per line)",
    "Container port 1",
    "Host port 1",
    "Path on that port",
    "Prefix",
    "Working directory",
    "User in the container",
    ...more,
    ...heartbeat,
    ...limits,
  ]);

  await openFold(form, "Remote URL");
  await form.getByRole("combobox", named("Authentication")).selectOption("google_id_token");
  await form.getByRole("button", named("Add header")).click();
  await form.getByRole("button", named("Show header 1 value")).click();
  const header = ["Header 1 name", "Header 1 value"];
  expect(await every()).toEqual(["Name", "URL", "Audience", "Description", ...header, "Prefix", ...more, ...heartbeat]);

  await form.getByRole("tab", named("Paste JSON")).click();
  expect(await every()).toEqual(["mcpServers JSON"]);
  await until(() => form.getByRole("alert").count()).toBe(0);
  await form
    .getByRole("textbox", named("mcpServers JSON"))
    .fill(JSON.stringify({ mcpServers: { 日本語サーバー: { command: WAYWARD } } }));
  await form.getByRole("button", named("Preview import")).click();
  await form.getByRole("combobox", named("Action for 日本語サーバー")).selectOption("rename");
  const name = form.getByRole("textbox", named("New name for 日本語サーバー"));
  await until(() => name.inputValue()).toBe("日本語サーバー 2");
  expect(await every()).toEqual(["New name for 日本語サーバー"]);
  // No Enter of all these saved or closed anything.
  await until(() => form.isVisible()).toBe(true);
  expect(await namesOf(daemon)).toEqual(["日本語サーバー"]);
});

test("a server's page, its runner and its settings, and the activity", async ({ daemon, open }) => {
  await daemon.register({ name: "every", command: EVERYTHING, args: [] });
  const page = await open("/servers/every/tools");
  const main = page.getByRole("main");
  let calls = 0;
  page.on("request", (request) => (calls += request.url().endsWith("/call") ? 1 : 0));
  const tab = (title: RegExp) => page.getByRole("tab", { name: title }).click();

  await main.getByRole("button", named("Run echo")).waitFor();
  expect(await composeIntoAll(page, main)).toEqual(["Search tools"]);
  await page.getByRole("searchbox", named("Search tools")).fill("");
  await page.getByRole("button", named("Run echo")).click();
  const runner = page.getByRole("dialog", named("Run echo"));
  expect(await composeIntoAll(page, runner)).toEqual(["message"]);
  await runner.getByRole("tab", named("JSON")).click();
  expect(await composeIntoAll(page, runner)).toEqual(["Arguments as JSON"]);
  await page.keyboard.press("Escape");
  await page.getByRole("alertdialog", named("Discard changes?")).getByRole("button", named("Discard")).click();
  await runner.waitFor({ state: "detached" });
  expect(calls).toBe(0);

  await tab(/^Resources/);
  await openFold(main, "Resource templates");
  await main.getByRole("textbox").first().waitFor();
  const templates = await composeIntoAll(page, main);
  expect(templates[0]).toBe("Search resources");
  expect(templates.slice(1)).toContain("resourceId");
  await until(() => page.getByRole("dialog").count()).toBe(0);
  calls = 0;
  await tab(/^Prompts/);
  await page.getByRole("searchbox", named("Search prompts")).fill("args");
  await until(() => main.getByRole("textbox").count()).toBe(2);
  expect(await composeIntoAll(page, main.getByRole("list", named("Prompts")))).toEqual(["city", "state"]);
  expect(calls).toBe(0);
  await tab(/^Logs/);
  await page.getByRole("log").waitFor();
  expect(await composeIntoAll(page, main)).toEqual(["Search the log"]);
  await tab(/^Settings/);
  await main.getByRole("textbox", named("Name")).waitFor();
  await openFold(main, "More options");
  expect(await composeIntoAll(page, main)).toHaveLength(15);
  await page.getByRole("button", named("Discard changes")).click();
  await daemon.call("every", "echo", { message: "x" });
  await page.goto("/activity");
  await main.getByRole("table").waitFor();
  expect(await composeIntoAll(page, main)).toEqual(["Search calls"]);
  expect(await namesOf(daemon)).toEqual(["every"]);
});

/** A conversation, and what of the daemon's it is. */
async function talk(page: Page): Promise<string> {
  await message(page).fill("始めます");
  await page.getByRole("button", named("Send")).click();
  await log(page).getByText("That is all.").waitFor();
  return new URL(page.url()).pathname;
}

test("the chat, its conversations, and the providers of models", async ({ daemon, model, open }) => {
  const page = await open("/chat");
  const main = page.getByRole("main");
  await talk(page);
  expect(await composeIntoAll(page, main)).toEqual(["Search conversations", "Message"]);
  expect(model.requests).toHaveLength(1);
  await page.getByRole("button", named("Rename")).click();
  const rename = page.getByRole("dialog", named("Rename conversation"));
  expect(await composeIntoAll(page, rename)).toEqual(["Title"]);
  await until(() => rename.isVisible()).toBe(true);
  await page.keyboard.press("Escape");
  await page.goto("/settings");
  await page.getByRole("button", named("Add provider")).click();
  const provider = page.getByRole("dialog", named("Add provider"));
  expect(await composeIntoAll(page, provider)).toEqual(["Name", "Base URL", "Default model"]);
  await until(() => provider.isVisible()).toBe(true);
  expect((await daemon.ask("GET", "/chat/providers")).providers).toHaveLength(1);
});

test("what was composed is what is saved, and comes back as it was", async ({ daemon, open }) => {
  const page = await open("/", { lang: "ja" });
  await page.getByRole("button", named("サーバーを追加")).click();
  const form = page.getByRole("dialog", named("サーバーを追加"));
  const field = (label: string) => form.getByRole("textbox", named(label));
  await composeInto(page, field("名前"), "変換した名前");
  await field("コマンド").fill(WAYWARD);
  await composeInto(page, field("説明"), "説明文です。");
  await form.getByRole("button", named("変数を追加")).click();
  await composeInto(page, form.getByLabel("変数 1 の名前", { exact: true }), "挨拶");
  await form.getByRole("button", named("変数 1 の値を表示")).click();
  await composeInto(page, form.getByLabel("変数 1 の値", { exact: true }), "こんにちは、世界");
  // Outside a composition Enter saves.
  await page.keyboard.press("Enter");
  await form.waitFor({ state: "detached" });
  await page.getByRole("rowheader", named("変換した名前")).waitFor();
  await until(async () => (await daemon.server("変換した名前")).status).toBe("ready");
  expect(await daemon.ask("GET", `/mcp/servers/${encodeURIComponent("変換した名前")}?reveal=true`)).toMatchObject({
    description: "説明文です。",
    environment: { 挨拶: "こんにちは、世界" },
  });
});
