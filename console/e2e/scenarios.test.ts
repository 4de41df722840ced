// The three acceptance scenarios of the requirements, as a person does them.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { WAYWARD } from "./support/places";
import { fillForm, fillNewServer, isOn, named, openTab, row, showsStatus, toggle } from "./support/screen";
import { expect, test, until } from "./support/test";

const FILESYSTEM = { name: "Filesystem Server", command: "npx" };
const PACKAGE = ["-y", "@modelcontextprotocol/server-filesystem"];

test("a server is added, starts, and shows its tools", async ({ daemon, open }) => {
  // covers: MGR-S1, MGR-1, MGR-3, MGR-9..11, MGR-13, MGR-33, MGR-59
  const page = await open("/");
  const dialog = await fillNewServer(page, { ...FILESYSTEM, args: [...PACKAGE, "/tmp"].join("\n") });
  expect(await dialog.getByRole("checkbox", named("Enabled")).isChecked()).toBe(true);
  await dialog.getByRole("button", named("Save")).click();
  await dialog.waitFor({ state: "detached" });

  await showsStatus(page, FILESYSTEM.name, "Connected");
  await isOn(page, FILESYSTEM.name, true);
  await until(() => row(page, FILESYSTEM.name).locator("code").textContent()).toBe(
    "npx -y @modelcontextprotocol/server-filesystem /tmp",
  );

  await row(page, FILESYSTEM.name).getByRole("link", named(FILESYSTEM.name)).click();
  await page.getByRole("heading", { level: 1, ...named(FILESYSTEM.name) }).waitFor();
  await openTab(page, "Tools");
  const tools = page.getByRole("list", named("Tools"));
  for (const tool of ["read_file", "write_file", "list_directory"]) {
    await tools.getByText(tool, { exact: true }).waitFor();
  }
  const server = await daemon.server(FILESYSTEM.name);
  expect(server).toMatchObject({ command: "npx", args: [...PACKAGE, "/tmp"], enabled: true, status: "ready" });
  expect(server.id).toMatch(/^[0-9a-f-]{36}$/);
  expect(server.created_at).toBe(server.updated_at);
});

test("a server is switched off and on again, and then works", async ({ daemon, open }) => {
  // covers: MGR-S2, MGR-17..19, MGR-21, MGR-23, MGR-25, MGR-27
  writeFileSync(join(daemon.home, "note.txt"), "こんにちは from the file\n");
  await daemon.register({ ...FILESYSTEM, args: [...PACKAGE, daemon.home] });
  const page = await open("/");
  const { name } = FILESYSTEM;
  await showsStatus(page, name, "Connected");

  await toggle(page, name).click();
  await showsStatus(page, name, "Stopped");
  await isOn(page, name, false);
  expect(await daemon.server(name)).toMatchObject({ status: "stopped", pid: null, enabled: false });

  await toggle(page, name).click();
  await showsStatus(page, name, "Connected");
  await isOn(page, name, true);

  await row(page, name).getByRole("link", named(name)).click();
  await openTab(page, "Tools");
  await page.getByRole("button", named("Run read_text_file")).click();
  const dialog = page.getByRole("dialog", named("Run read_text_file"));
  await dialog.getByRole("textbox", named("path")).fill(join(daemon.home, "note.txt"));
  await dialog.getByRole("button", named("Run")).click();
  await dialog.getByRole("region", named("Result")).getByText("こんにちは from the file").first().waitFor();
});

test("a server that does not start says why, and starts once it is put right", async ({ daemon, open }) => {
  // covers: MGR-S3, MGR-14, MGR-16, MGR-22, MGR-28
  await daemon.wayward("bystander");
  const page = await open("/");
  const name = "Broken";
  const dialog = await fillNewServer(page, { name, command: "/no/such/program" });
  await dialog.getByRole("checkbox", named("Enabled")).uncheck();
  await dialog.getByRole("button", named("Save")).click();
  await showsStatus(page, name, "Stopped");

  await toggle(page, name).click();
  await showsStatus(page, name, "Error");
  await isOn(page, name, false);
  const show = row(page, name).getByRole("button", named(`Show error for ${name}`));
  expect(await show.getAttribute("aria-expanded")).toBe("false");
  await show.click();
  expect(await show.getAttribute("aria-expanded")).toBe("true");
  const details = page.getByRole("region", named(`Error details for ${name}`));
  await details.getByText("/no/such/program").first().waitFor();

  // One that runs and gives up has something to say on stderr, and an exit code.
  await row(page, name)
    .getByRole("button", named(`Edit ${name}`))
    .click();
  const edit = page.getByRole("dialog", named(`Edit ${name}`));
  await fillForm(edit, { command: WAYWARD, args: "--exit-at-start\n7" });
  await edit.getByRole("checkbox", named("Enabled")).check();
  await edit.getByRole("button", named("Save")).click();
  await edit.waitFor({ state: "detached" });
  await until(async () => (await daemon.server(name)).error?.exit_code).toBe(7);
  await showsStatus(page, name, "Error");
  await details.getByText("wayward: cannot start, exiting with 7").waitFor();
  await isOn(page, name, false);

  await row(page, name)
    .getByRole("button", named(`Edit ${name}`))
    .click();
  await fillForm(edit, { args: "" });
  await edit.getByRole("checkbox", named("Enabled")).check();
  await edit.getByRole("button", named("Save")).click();
  await showsStatus(page, name, "Connected");
  await isOn(page, name, true);
  await showsStatus(page, "bystander", "Connected");
});
