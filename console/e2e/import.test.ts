// Servers from another client's configuration, and from templates.
import type { Locator, Page } from "playwright-core";
import { WAYWARD } from "./support/places";
import { named, row, showsStatus } from "./support/screen";
import { expect, test, until } from "./support/test";

async function preview(page: Page, json: string): Promise<Locator> {
  await page.getByRole("button", named("Add server")).click();
  const dialog = page.getByRole("dialog", named("Add server"));
  await dialog.getByRole("tab", named("Paste JSON")).click();
  await dialog.getByRole("textbox", named("mcpServers JSON")).fill(json);
  await dialog.getByRole("button", named("Preview import")).click();
  return dialog;
}

const CONFIGURATION = `{
  // as other clients write it
  "mcpServers": {
    "one": { "command": "${WAYWARD}", "args": ["--page", "7"], "env": { "KEY": "値" } },
    "two": { "command": "${WAYWARD}", "disabled": true, },
    "three": { "command": "no-such-command-here" },
  },
}`;

test("a configuration with comments is looked at first and then imported", async ({ daemon, open }) => {
  const page = await open("/");
  const dialog = await preview(page, CONFIGURATION);
  const table = dialog.getByRole("table", named("Servers to import"));
  for (const name of ["one", "two", "three"]) await table.getByRole("rowheader", named(name)).waitFor();
  await table.getByText("Command “no-such-command-here” was not found on PATH").waitFor();
  expect(await daemon.servers()).toEqual([]);
  await dialog.getByRole("combobox", named("Action for three")).selectOption("skip");
  await dialog.getByRole("button", named("Import 2 servers")).click();
  await dialog.getByText("Import result").waitFor();
  await page.keyboard.press("Escape");
  await showsStatus(page, "one", "Connected");
  await row(page, "two").waitFor();
  expect((await daemon.servers()).map((server) => server.name).toSorted()).toEqual(["one", "two"]);
  expect((await daemon.call("one", "env", { name: "KEY" })).body.result.content[0].text).toBe("値");
  expect((await daemon.server("one")).args).toEqual(["--page", "7"]);
});

test("text that is no JSON is refused with its place, and what was typed stays", async ({ daemon, open }) => {
  const page = await open("/");
  const dialog = await preview(page, '{"mcpServers": {"a": {"command": }}}');
  await until(() => dialog.getByRole("alert").allTextContents()).toEqual([
    expect.stringMatching(/not JSON.*line 1, column \d+/),
  ]);
  await until(() => dialog.getByRole("textbox", named("mcpServers JSON")).inputValue()).toContain('"command": }');
  await dialog.getByRole("textbox", named("mcpServers JSON")).fill('{"unrelated": 1}');
  await dialog.getByRole("button", named("Preview import")).click();
  await dialog.getByRole("alert").waitFor();
  expect(await daemon.servers()).toEqual([]);
});

for (const [shape, json] of Object.entries({
  servers: { servers: { shaped: { command: WAYWARD } } },
  "a bare map": { shaped: { command: WAYWARD } },
})) {
  test(`the shape “${shape}” is understood`, async ({ open }) => {
    const page = await open("/");
    const dialog = await preview(page, JSON.stringify(json));
    await dialog.getByRole("rowheader", named("shaped")).waitFor();
    await dialog.getByRole("button", { name: /^Import 1 server/ }).click();
    await dialog.getByText("Import result").waitFor();
    await page.keyboard.press("Escape");
    await showsStatus(page, "shaped", "Connected");
  });
}

test("a name that is taken is left alone unless the person decides otherwise", async ({ daemon, open }) => {
  await daemon.wayward("mine", ["--page", "5"]);
  await daemon.register({
    name: "yours",
    command: WAYWARD,
    args: ["--page", "5"],
    tools_deny: ["fail"],
    call_timeout_ms: 45_000,
  });
  const page = await open("/");
  const command = { command: WAYWARD, args: ["--page", "6"], includeTools: ["echo"] };
  const dialog = await preview(
    page,
    JSON.stringify({ mcpServers: { mine: command, yours: command, theirs: command } }),
  );
  await dialog.getByRole("button", named("Import 1 servers")).waitFor();
  const action = (name: string) => dialog.getByRole("combobox", named(`Action for ${name}`));
  await until(() => action("mine").inputValue()).toBe("skip");
  await action("mine").selectOption("rename");
  await dialog.getByRole("textbox", named("New name for mine")).fill("also mine");
  await action("yours").selectOption("overwrite");
  await dialog.getByRole("button", named("Import 3 servers")).click();
  await dialog.getByText("Import result").waitFor();
  await page.keyboard.press("Escape");
  for (const name of ["mine", "also mine", "yours", "theirs"]) await showsStatus(page, name, "Connected");
  const args = Object.fromEntries((await daemon.servers()).map((server) => [server.name, server.args[1]]));
  expect(args).toEqual({ mine: "5", "also mine": "6", yours: "6", theirs: "6" });
  expect(await daemon.server("yours")).toMatchObject({
    tools_allow: ["echo"],
    tools_deny: ["fail"],
    call_timeout_ms: 45_000,
  });
});

test("a template only fills in the form", async ({ daemon, open }) => {
  // covers: MGR-62
  const page = await open("/");
  await page.getByRole("button", named("Add server")).click();
  const dialog = page.getByRole("dialog", named("Add server"));
  for (const [template, command, argument] of [
    ["filesystem", "npx", "@modelcontextprotocol/server-filesystem"],
    ["fetch", "uvx", "mcp-server-fetch"],
    ["memory", "npx", "@modelcontextprotocol/server-memory"],
    ["git", "uvx", "mcp-server-git"],
    ["sqlite", "uvx", "mcp-server-sqlite"],
    ["everything", "npx", "@modelcontextprotocol/server-everything"],
  ] as const) {
    await dialog.getByRole("tab", named("Templates")).click();
    await dialog.getByRole("button", { name: new RegExp(`^${template} `) }).click();
    await until(() => dialog.getByRole("textbox", named("Command")).inputValue()).toBe(command);
    await until(() => dialog.getByRole("textbox", named("Arguments (one per line)")).inputValue()).toContain(argument);
    await until(() => dialog.getByRole("textbox", named("Name")).inputValue()).toBe(template);
  }
  expect(await daemon.servers()).toEqual([]);
});
