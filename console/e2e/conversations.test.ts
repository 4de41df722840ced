// What is around the turns of a chat: providers, conversations, the choice of model and tools.
import { readFileSync } from "node:fs";
import { ask, card, finished, log, message, test } from "./support/chat";
import { visit } from "./support/browser";
import { Daemon } from "./support/daemon";
import { KEY, Model } from "./support/model";
import { named, openTab } from "./support/screen";
import { EVERYTHING } from "./support/places";
import { test as bare, expect, until } from "./support/test";

bare(
  "without a model the chat leads to the settings, where a provider is added, tested, changed and removed",
  async ({ daemon, open }) => {
    const model = await Model.start();
    const page = await open("/chat");
    await page.getByText("No model is set up yet").waitFor();
    await until(() => message(page).count()).toBe(0);
    await page.getByRole("link", named("Open Settings")).click();

    await page.getByRole("button", named("Add provider")).click();
    const form = page.getByRole("dialog", named("Add provider"));
    await form.getByRole("textbox", named("Name")).fill("My server");
    await form.getByRole("textbox", named("Base URL")).fill("not a url");
    await form.getByRole("button", named("Save")).click();
    await until(() => form.getByRole("textbox", named("Base URL")).getAttribute("aria-invalid")).toBe("true");
    await form.getByRole("textbox", named("Base URL")).fill(model.url);
    await form.getByLabel("API key").fill(KEY);
    await form.getByRole("combobox", named("Default model")).fill("test-model");
    // It can be tried before anything is saved.
    await form.getByRole("button", named("Test")).click();
    await form.getByText(/^test-model answered in /).waitFor();
    expect((await daemon.ask("GET", "/chat/providers")).configured).toBe(false);
    await form.getByLabel("API key").fill("sk-wrong");
    await form.getByRole("button", named("Save")).click();
    await form.waitFor({ state: "detached" });

    const list = page.getByRole("list", named("Providers"));
    await list.getByRole("button", named("Test My server")).click();
    await list.getByRole("alert", named("The test failed: The provider does not accept the key")).waitFor();

    await list.getByRole("button", named("Edit My server")).click();
    const edit = page.getByRole("dialog", named("Edit My server"));
    await until(() => edit.getByLabel("API key").inputValue()).toBe("");
    await edit.getByText("A key is kept. Leave it empty to keep that one.").waitFor();
    await edit.getByLabel("API key").fill(KEY);
    await edit.getByRole("button", named("Save")).click();
    await edit.waitFor({ state: "detached" });
    await list.getByRole("combobox", named("Default model of My server")).selectOption("other-model");
    await list.getByRole("button", named("Test My server")).click();
    await list.getByText(/^other-model answered in /).waitFor();
    // The key is kept, and never given out.
    const answer = JSON.stringify(await daemon.ask("GET", "/chat/providers"));
    expect(answer).toContain('"has_key":true');
    expect(answer).not.toContain(KEY);
    expect(await page.content()).not.toContain(KEY);

    await page.getByRole("link", named("Chat")).click();
    await ask(page, "are you there?");
    await log(page).getByText("That is all.").waitFor();
    expect(model.requests.at(-1)!.model).toBe("other-model");

    await page.getByRole("link", named("Settings")).click();
    await list.getByRole("button", named("Remove My server")).click();
    const question = page.getByRole("alertdialog", named("Remove My server?"));
    await question.getByRole("button", named("Remove")).click();
    await page.getByText("No provider yet").waitFor();
    await model.stop();
  },
);

bare("a provider of the environment is shown, tried and used, and cannot be changed here", async () => {
  const model = await Model.start();
  const environment = { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: model.url, COFER_CHAT_MODEL: "test-model" };
  const daemon = await Daemon.start(environment);
  const { page, problems } = await visit(daemon, "/settings");
  const list = page.getByRole("list", named("Providers"));
  await list.getByText("from environment", { exact: true }).waitFor();
  await list.getByText(/^Set by OPENAI_API_KEY, OPENAI_BASE_URL/).waitFor();
  await until(() => list.getByRole("button").allTextContents()).toEqual(["Test"]);
  await list.getByRole("button", named("Test OpenAI")).click();
  await list.getByText(/^test-model answered in /).waitFor();
  await page.getByRole("link", named("Chat")).click();
  await ask(page, "hello");
  await log(page).getByText("That is all.").waitFor();
  expect(problems).toEqual([]);
  await page.context().close();
  await daemon.stop();
  await model.stop();
});

test("conversations are listed, searched, renamed, exported and deleted", async ({ daemon, model, open }) => {
  const page = await open("/chat");
  await ask(page, "about apples");
  await log(page).getByText("That is all.").waitFor();
  await finished(page);
  const list = page.getByRole("list", named("Conversations"));
  await list.getByRole("link", { name: /^about apples/ }).waitFor();
  await page.getByRole("link", named("New chat")).click();
  await page.getByRole("heading", { level: 1, ...named("Chat") }).waitFor();
  model.says({ text: ["Pears are fruit."] });
  await ask(page, "about pears");
  await log(page).getByText("Pears are fruit.").waitFor();
  await finished(page);
  await until(() => list.getByRole("link").count()).toBe(2);

  await page.getByRole("button", named("Rename")).click();
  const dialog = page.getByRole("dialog", named("Rename conversation"));
  await dialog.getByRole("textbox", named("Title")).fill("Fruit");
  await dialog.getByRole("button", named("Save")).click();
  await page.getByRole("heading", { level: 1, ...named("Fruit") }).waitFor();
  await list.getByRole("link", { name: /^Fruit/ }).waitFor();

  for (const [button, extension] of [
    ["Export as Markdown", "md"],
    ["Export as JSON", "json"],
  ] as const) {
    const download = page.waitForEvent("download");
    await page.getByRole("button", named(button)).click();
    const file = await download;
    expect(file.suggestedFilename()).toBe(`Fruit.${extension}`);
    expect(readFileSync(await file.path(), "utf8")).toContain("Pears are fruit.");
  }

  await page.getByRole("searchbox", named("Search conversations")).fill("apples");
  await until(() => list.getByRole("link").count()).toBe(1);
  await list.getByRole("button", named("Delete about apples")).click();
  await page.getByRole("alertdialog", named("Delete about apples?")).getByRole("button", named("Cancel")).click();
  await list.getByRole("link").click();
  await log(page).getByText("about apples", { exact: true }).waitFor();
  await page.getByRole("button", named("Delete")).click();
  await page.getByRole("alertdialog", named("Delete about apples?")).getByRole("button", named("Delete")).click();
  await page.getByRole("heading", { level: 1, ...named("Chat") }).waitFor();
  await page.getByText("No conversation matches.").waitFor();
  expect((await daemon.ask("GET", "/chat/conversations")).total).toBe(1);
});

test("what another tab deletes is gone here, and an address that leads nowhere says so", async ({
  daemon,
  model,
  open,
}) => {
  expect(model.requests).toEqual([]);
  const page = await open("/chat");
  await ask(page, "soon gone");
  await log(page).getByText("That is all.").waitFor();
  await daemon.ask("DELETE", `/chat/conversations/${new URL(page.url()).pathname.split("/").at(-1)}`);
  await page.getByText("This conversation does not exist").waitFor();
  await page.goto("/chat/00000000-0000-7000-8000-000000000000");
  await page.getByText("This conversation does not exist").waitFor();
  await page.goto("/chat/nonsense");
  await page.getByText("This conversation does not exist").waitFor();
});

test("model, servers and tools are chosen for each chat, and stay chosen", async ({ daemon, model, open }) => {
  await daemon.register({ name: "every", command: EVERYTHING, args: [] });
  await daemon.wayward("wild");
  const page = await open("/chat");
  const tools = page.getByRole("button", { name: /^\d+ tools · about [\d,]+ tokens$/ });
  const before = await tools.textContent();
  await tools.click();
  const dialog = page.getByRole("dialog", named("Tools for this chat"));
  await dialog.getByRole("checkbox", named("every")).uncheck();
  await dialog.getByRole("button", { name: /^Tools\s+wild$/ }).click();
  await dialog.getByRole("checkbox", named("hang")).uncheck();
  await dialog.getByRole("button", named("Close")).click();
  await until(() => tools.textContent()).not.toBe(before);
  await page.getByRole("combobox", named("Model")).selectOption({ label: "other-model" });
  await ask(page, "use what you have");
  await log(page).getByText("That is all.").waitFor();
  const [request] = model.requests;
  expect(request!.model).toBe("other-model");
  const names = request!.tools!.map((tool: { function: { name: string } }) => tool.function.name);
  expect(names).toContain("wild__pid");
  expect(names.filter((name: string) => name.startsWith("every__") || name === "wild__hang")).toEqual([]);
  await page.reload();
  await log(page).getByText("That is all.").waitFor();
  await until(() => page.getByRole("combobox", named("Model")).locator("option:checked").textContent()).toBe(
    "other-model",
  );
  await tools.click();
  await until(() => dialog.getByRole("checkbox", named("every")).isChecked()).toBe(false);
});

test("a prompt of a server is taken into the chat", async ({ daemon, model, open }) => {
  expect(model.requests).toEqual([]);
  await daemon.register({ name: "every", command: EVERYTHING, args: [] });
  const page = await open("/servers/every/prompts");
  await openTab(page, "Prompts");
  await page.getByRole("button", named("Show messages of simple-prompt")).click();
  await page.getByRole("button", named("Use in chat")).click();
  await page.getByRole("heading", { level: 1, ...named("Chat") }).waitFor();
  await until(() => message(page).inputValue()).toMatch(/simple prompt/);
});

test("the chat is reached and used with the keyboard alone", async ({ daemon, model, open }) => {
  await daemon.wayward("wild");
  model.says({ calls: [{ name: "wild__pid" }] });
  const page = await open("/");
  await page.getByText("wild").first().waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("c");
  await page.getByRole("heading", { level: 1, ...named("Chat") }).waitFor();
  await message(page).focus();
  await page.keyboard.type("which process?");
  await page.keyboard.press("Enter");
  await log(page).getByText("That is all.").waitFor();
  await card(page, 1, "pid").getByRole("button", named("Arguments")).focus();
  await page.keyboard.press("Enter");
  await card(page, 1, "pid").getByRole("region", named("Arguments")).waitFor();
});

bare("a provider without a model is not offered as ready", async ({ daemon, open }) => {
  const model = await Model.start();
  const body = { kind: "openai", name: "Modelless", base_url: model.url, api_key: KEY, is_default: true };
  await daemon.ask("PUT", "/chat/providers/test", body);
  const page = await open("/chat");
  await page.getByText("No model chosen", { exact: true }).waitFor();
  await message(page).fill("hello?");
  await until(() => page.getByRole("button", named("Send")).isDisabled()).toBe(true);
  await page.getByRole("link", named("Open Settings")).click();
  await page.getByRole("list", named("Providers")).getByText("No model chosen", { exact: true }).waitFor();
  await page.getByRole("link", named("Chat")).click();
  await page.getByRole("combobox", named("Model")).selectOption({ label: "test-model" });
  await message(page).fill("hello?");
  await page.getByRole("button", named("Send")).click();
  await log(page).getByText("That is all.").waitFor();
  await model.stop();
});

test("the overview and the chat count the same tokens", async ({ daemon, model, open }) => {
  await daemon.wayward("counted");
  const page = await open("/servers/counted/overview");
  const shown = page.getByRole("main").getByText(/^about [\d,]+ tokens$/);
  await shown.waitFor();
  const tokens = await shown.textContent();
  await page.getByRole("link", named("Chat")).click();
  await page.getByRole("button", { name: new RegExp(`^\\d+ tools · ${tokens}$`) }).waitFor();
  expect(model.requests).toEqual([]);
});
