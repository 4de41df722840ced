// Adding and changing a server: the form, what it checks, and what it warns of.
import { existsSync } from "node:fs";
import type { Locator, Page } from "playwright-core";
import { WAYWARD } from "./support/places";
import { complaint, fillForm, fillNewServer, named, openTab, row, showsStatus } from "./support/screen";
import { expect, test, until } from "./support/test";

const field = (form: Locator, name: string) => form.getByRole("textbox", named(name));
const save = (form: Locator) => form.getByRole("button", named("Save")).click();

async function openForm(page: Page): Promise<Locator> {
  await page.getByRole("button", named("Add server")).click();
  return page.getByRole("dialog", named("Add server"));
}

test("the form has every field with its default", async ({ open }) => {
  // covers: MGR-1..4, MGR-52, MGR-54
  const form = await openForm(await open("/"));
  for (const name of ["Name", "Command", "Arguments (one per line)", "Description"]) {
    expect(await field(form, name).inputValue(), name).toBe("");
  }
  expect(await field(form, "Arguments (one per line)").evaluate((element) => element.tagName)).toBe("TEXTAREA");
  await until(() => form.getByRole("checkbox", named("Enabled")).isChecked()).toBe(true);
  const include = form.getByRole("checkbox", named("Include resources as tools"));
  await until(() => include.isChecked()).toBe(false);
  const hint = await include.evaluate(
    (element) => document.getElementById(element.getAttribute("aria-describedby") ?? "")?.textContent,
  );
  expect(hint).toMatch(/only for servers with few resources/);
  for (const tab of ["Form", "Paste JSON", "Templates"]) await form.getByRole("tab", named(tab)).waitFor();
  await form.getByRole("group", named("Environment variables")).waitFor();
});

test("what is missing is said at its field, and the first one gets the focus", async ({ daemon, open }) => {
  // covers: MGR-5
  const form = await openForm(await open("/"));
  await save(form);
  await until(() => complaint(field(form, "Name"))).toContain("Name is required");
  await until(() => complaint(field(form, "Command"))).toContain("Command is required");
  await until(() => field(form, "Name").evaluate((element) => element === document.activeElement)).toBe(true);
  await field(form, "Name").fill("named");
  await until(() => complaint(field(form, "Name"))).toBeNull();
  await save(form);
  await until(() => field(form, "Command").evaluate((element) => element === document.activeElement)).toBe(true);
  expect(await daemon.servers()).toEqual([]);
});

test("a name that is taken is said while it is typed, and refused when it is saved", async ({ daemon, open }) => {
  // covers: MGR-6
  await daemon.wayward("taken", [], { enabled: false });
  const page = await open("/");
  const form = await fillNewServer(page, { name: "taken", command: WAYWARD });
  await until(() => complaint(field(form, "Name"))).toContain("A server named “taken” already exists");
  await save(form);
  await until(() => complaint(field(form, "Name"))).toContain("A server named “taken” already exists");
  expect(await daemon.servers()).toHaveLength(1);
  await field(form, "Name").fill("taken too");
  await until(() => complaint(field(form, "Name"))).toBeNull();
  await save(form);
  await showsStatus(page, "taken too", "Connected");
});

test("a command that is not on PATH is said while it is typed", async ({ open }) => {
  // covers: MGR-7
  const form = await fillNewServer(await open("/"), { name: "x", command: "no-such-command-here" });
  await field(form, "Description").focus();
  await until(() => complaint(field(form, "Command"))).toContain(
    "Command “no-such-command-here” was not found on PATH",
  );
  await field(form, "Command").fill("sh");
  await until(() => complaint(field(form, "Command"))).toBeNull();
});

test("each line is one argument, spaces and all", async ({ daemon, open }) => {
  // covers: MGR-3
  const page = await open("/");
  const args = ["--pid-file", `${daemon.home}/a file with spaces`];
  const form = await fillNewServer(page, { name: "lines", command: WAYWARD, args: args.join("\n") });
  await form.getByText(`'${daemon.home}/a file with spaces'`).waitFor();
  await save(form);
  await showsStatus(page, "lines", "Connected");
  expect((await daemon.server("lines")).args).toEqual(args);
  expect(existsSync(args[1]!)).toBe(true);
});

test("variables are rows that can be added, shown and removed, and reach the server", async ({ daemon, open }) => {
  // covers: MGR-4
  const page = await open("/");
  const form = await fillNewServer(page, { name: "env", command: WAYWARD });
  const add = form.getByRole("button", named("Add variable"));
  for (const [n, name, value] of [
    [1, "ONE", "first value"],
    [2, "TWO", "gone"],
    [3, "THREE", "日本語"],
  ] as const) {
    await add.click();
    await form.getByLabel(`Variable ${n} name`, { exact: true }).fill(name);
    await form.getByLabel(`Variable ${n} value`, { exact: true }).fill(value);
  }
  const value = form.getByLabel("Variable 1 value", { exact: true });
  await until(() => value.getAttribute("type")).toBe("password");
  const show = form.getByRole("button", named("Show variable 1 value"));
  await until(() => show.getAttribute("aria-pressed")).toBe("false");
  await show.click();
  await until(() => show.getAttribute("aria-pressed")).toBe("true");
  await until(() => value.getAttribute("type")).toBe("text");
  await form.getByRole("button", named("Remove variable 2")).click();
  await until(() => form.getByLabel("Variable 2 name", { exact: true }).inputValue()).toBe("THREE");
  await save(form);
  await showsStatus(page, "env", "Connected");
  for (const [name, expected] of [
    ["ONE", "first value"],
    ["TWO", "(unset)"],
    ["THREE", "日本語"],
  ] as const) {
    expect((await daemon.call("env", "env", { name })).body.result.content[0].text).toBe(expected);
  }
});

test("a pasted .env block fills the rows", async ({ open }) => {
  const page = await open("/");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const form = await openForm(page);
  await form.getByRole("button", named("Add variable")).click();
  await page.evaluate(() => navigator.clipboard.writeText("# keys\nexport A=1\nB=\"two words\"\n\nC='三'\n"));
  await form.getByLabel("Variable 1 name", { exact: true }).focus();
  await page.keyboard.press("Control+V");
  for (const [n, name, value] of [
    [1, "A", "1"],
    [2, "B", "two words"],
    [3, "C", "三"],
  ] as const) {
    await until(() => form.getByLabel(`Variable ${n} name`, { exact: true }).inputValue()).toBe(name);
    await until(() => form.getByLabel(`Variable ${n} value`, { exact: true }).inputValue()).toBe(value);
  }
});

test("a secret and a growing context are warned of, and can be saved all the same", async ({ daemon, open }) => {
  // covers: MGR-8, MGR-52, MGR-53
  const page = await open("/");
  const form = await fillNewServer(page, { name: "careful", command: WAYWARD });
  const secret = form.getByRole("note", named("Plain-text secret warning"));
  const context = form.getByRole("note", named("Context size warning"));
  await until(() => secret.count()).toBe(0);
  await form.getByRole("button", named("Add variable")).click();
  await form.getByLabel("Variable 1 name", { exact: true }).fill("GITHUB_TOKEN");
  await form.getByLabel("Variable 1 value", { exact: true }).fill("ghp_0123456789abcdefghijklmnopqrstuvwxyz");
  await secret.waitFor();
  await until(() => secret.textContent()).toMatch(/GITHUB_TOKEN.*plain text/);
  await until(() => context.count()).toBe(0);
  await form.getByRole("checkbox", named("Include resources as tools")).check();
  await context.waitFor();
  await save(form);
  await showsStatus(page, "careful", "Connected");
  expect(await daemon.server("careful")).toMatchObject({
    include_resources: true,
    environment: { GITHUB_TOKEN: "********" },
  });
});

test("a server that is saved switched off is not started", async ({ daemon, open }) => {
  // covers: MGR-12
  const page = await open("/");
  const pids = `${daemon.home}/pids`;
  const form = await fillNewServer(page, { name: "off", command: WAYWARD, args: `--pid-file\n${pids}` });
  await form.getByRole("checkbox", named("Enabled")).uncheck();
  await save(form);
  await showsStatus(page, "off", "Stopped");
  expect(await daemon.server("off")).toMatchObject({ enabled: false, status: "stopped", pid: null, started_at: null });
  expect(existsSync(pids)).toBe(false);
});

test("changing one thing leaves the others, also values that are not shown", async ({ daemon, open }) => {
  await daemon.wayward("edited", ["--page", "9"], {
    description: "before",
    environment: { KEEP: "kept value", CHANGE: "old" },
  });
  await daemon.wayward("neighbour");
  const page = await open("/");
  await page.getByRole("button", named("Edit edited")).click();
  const form = page.getByRole("dialog", named("Edit edited"));
  await until(() => field(form, "Name").inputValue()).toBe("edited");
  await until(() => field(form, "Command").inputValue()).toBe(WAYWARD);
  await until(() => field(form, "Arguments (one per line)").inputValue()).toBe("--page\n9");
  await until(() => field(form, "Description").inputValue()).toBe("before");
  const names = await Promise.all(
    [1, 2].map((n) => form.getByLabel(`Variable ${n} name`, { exact: true }).inputValue()),
  );
  expect(names.toSorted()).toEqual(["CHANGE", "KEEP"]);
  await until(() => form.getByLabel("Variable 1 value", { exact: true }).inputValue()).toBe("");
  await form.getByLabel(`Variable ${names.indexOf("CHANGE") + 1} value`, { exact: true }).fill("new");
  await fillForm(form, { description: "after" });
  await save(form);
  await form.waitFor({ state: "detached" });
  await until(async () => (await daemon.server("edited")).status).toBe("ready");
  const values = await Promise.all(
    ["KEEP", "CHANGE"].map(async (name) => (await daemon.call("edited", "env", { name })).body.result.content[0].text),
  );
  expect(values).toEqual(["kept value", "new"]);
  expect(await daemon.server("edited")).toMatchObject({ description: "after", args: ["--page", "9"] });
  await showsStatus(page, "neighbour", "Connected");
});

test("a server is renamed from its own page, which follows it", async ({ daemon, open }) => {
  await daemon.wayward("old name");
  const page = await open("/servers/old%20name/settings");
  const main = page.getByRole("main");
  await field(main, "Name").fill("新しい名前");
  await page.getByText("Unsaved changes").waitFor();
  await openTab(page, "Overview");
  await openTab(page, "Settings");
  await until(() => field(main, "Name").inputValue()).toBe("新しい名前");
  await main.getByRole("button", named("Save")).click();
  await page.getByRole("heading", { level: 1, ...named("新しい名前") }).waitFor();
  expect(decodeURIComponent(new URL(page.url()).pathname)).toBe("/servers/新しい名前/settings");
  expect((await daemon.servers()).map((server) => server.name)).toEqual(["新しい名前"]);
  await page.getByText("Unsaved changes").waitFor({ state: "detached" });
});

test("what the daemon refuses is said at the field that it refused", async ({ daemon, open }) => {
  const page = await open("/");
  const form = await fillNewServer(page, { name: "limits", command: WAYWARD });
  await form.getByText("More options").click();
  const memory = form.getByRole("textbox", named("Memory"));
  await memory.fill("a lot");
  await save(form);
  await until(() => complaint(memory)).toMatch(/\S/);
  await until(() => memory.evaluate((element) => element === document.activeElement)).toBe(true);
  expect(await daemon.servers()).toEqual([]);
  await memory.fill("512M");
  await save(form);
  await showsStatus(page, "limits", "Connected");
  expect((await daemon.server("limits")).resource_limits.memory).toBe("512M");
});

test("containers and remote servers have a form of their own", async ({ open }) => {
  const page = await open("/");
  const form = await openForm(page);
  await field(form, "Name").fill("elsewhere");
  await form.getByText("Container image", { exact: true }).click();
  await save(form);
  await until(() => complaint(field(form, "Image"))).toContain("Image is required");
  await field(form, "Volumes (one path per line)").waitFor();
  await until(() => field(form, "Command").count()).toBe(0);
  await form.getByText("Remote URL", { exact: true }).click();
  await field(form, "URL").fill("not an address");
  await save(form);
  await until(() => complaint(field(form, "URL"))).toContain("not an http or https address");
  await until(() => field(form, "Image").count()).toBe(0);
});

test("requests to a remote server are signed as the form says, until it says otherwise", async ({ daemon, open }) => {
  const page = await open("/");
  const form = await openForm(page);
  await field(form, "Name").fill("signed");
  await form.getByText("Remote URL", { exact: true }).click();
  await field(form, "URL").fill("http://reports.example.com/mcp");
  await form.getByRole("combobox", named("Authentication")).selectOption("google_id_token");
  await field(form, "Audience").fill("https://other.example.com");
  await form.getByRole("checkbox", named("Enabled")).uncheck();
  await save(form);
  await until(() => complaint(field(form, "URL"))).toContain("https");
  await field(form, "URL").fill("https://reports.example.com/mcp");
  await save(form);
  await form.waitFor({ state: "detached" });
  expect(await daemon.server("signed")).toMatchObject({
    auth: "google_id_token",
    audience: "https://other.example.com",
  });
  await page.getByRole("button", named("Edit signed")).click();
  const edit = page.getByRole("dialog", named("Edit signed"));
  await until(() => field(edit, "Audience").inputValue()).toBe("https://other.example.com");
  await edit.getByRole("combobox", named("Authentication")).selectOption("");
  await save(edit);
  await edit.waitFor({ state: "detached" });
  const now = await daemon.server("signed");
  expect([now.auth ?? null, now.audience ?? null]).toEqual([null, null]);
});

test("Cancel and Escape leave everything as it was", async ({ daemon, open }) => {
  const page = await open("/");
  for (const leave of [
    (form: Locator) => form.getByRole("button", named("Cancel")).click(),
    async () => {
      await page.keyboard.press("Escape");
      await page.getByRole("alertdialog", named("Discard changes?")).getByRole("button", named("Discard")).click();
    },
  ]) {
    const form = await fillNewServer(page, { name: "never", command: WAYWARD });
    await leave(form);
    await form.waitFor({ state: "detached" });
    await until(() =>
      page.getByRole("button", named("Add server")).evaluate((element) => element === document.activeElement),
    ).toBe(true);
  }
  expect(await daemon.servers()).toEqual([]);
  await until(() => row(page, "never").count()).toBe(0);
});

test("Esc asks before it discards a filled form", async ({ daemon, open }) => {
  await daemon.wayward("kept");
  const page = await open("/");
  const dialog = await fillNewServer(page, { name: "half", command: "node" });
  const question = page.getByRole("alertdialog", named("Discard changes?"));
  await page.keyboard.press("Escape");
  await question.getByRole("button", named("Keep editing")).click();
  await question.waitFor({ state: "detached" });
  await until(() => dialog.getByRole("textbox", named("Name")).inputValue()).toBe("half");
  await page.keyboard.press("Escape");
  await question.getByRole("button", named("Discard")).click();
  await dialog.waitFor({ state: "detached" });

  // A form as it was opened, or as it was before, has nothing to lose.
  await page.getByRole("button", named("Edit kept")).click();
  const edit = page.getByRole("dialog", named("Edit kept"));
  const description = edit.getByRole("textbox", named("Description"));
  await description.fill("x");
  await description.fill("");
  await page.keyboard.press("Escape");
  await edit.waitFor({ state: "detached" });
  expect((await daemon.servers()).map(({ name }) => name)).toEqual(["kept"]);
});
