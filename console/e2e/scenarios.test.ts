// The three acceptance scenarios of the requirements, step by step as they are written there.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ask, card, finished, log, test, unfold } from "./support/chat";
import { WAYWARD } from "./support/places";
import { fillForm, fillNewServer, isOn, named, openTab, row, showsStatus, toggle } from "./support/screen";
import { expect, until } from "./support/test";

const FILESYSTEM = { name: "Filesystem Server", command: "npx" };
const PACKAGE = ["-y", "@modelcontextprotocol/server-filesystem"];

test("scenario 1: a server is added and started", async ({ daemon, open }) => {
  // covers: MGR-S1, MGR-1, MGR-3, MGR-9..11, MGR-13, MGR-33, MGR-59
  const { name } = FILESYSTEM;
  const page = await open("/");
  // 1 and 2: "Add server", then name, command and arguments.
  const dialog = await fillNewServer(page, { ...FILESYSTEM, args: [...PACKAGE, "/tmp"].join("\n") });
  // 3: Enabled is on, and it is saved.
  await until(() => dialog.getByRole("checkbox", named("Enabled")).isChecked()).toBe(true);
  await dialog.getByRole("button", named("Save")).click();
  await dialog.waitFor({ state: "detached" });

  // 4: it starts.
  await showsStatus(page, name, "Connected");
  await isOn(page, name, true);
  await until(() => row(page, name).locator("code").textContent()).toBe(
    "npx -y @modelcontextprotocol/server-filesystem /tmp",
  );

  // 5: the list of its tools.
  await row(page, name).getByRole("link", named(name)).click();
  await page.getByRole("heading", { level: 1, ...named(name) }).waitFor();
  await openTab(page, "Tools");
  const tools = page.getByRole("list", named("Tools"));
  for (const tool of ["read_file", "write_file", "list_directory"]) {
    await tools.getByText(tool, { exact: true }).waitFor();
  }
  const server = await daemon.server(name);
  expect(server).toMatchObject({ command: "npx", args: [...PACKAGE, "/tmp"], enabled: true, status: "ready" });
  expect(server.id).toMatch(/^[0-9a-f-]{36}$/);
  expect(server.created_at).toBe(server.updated_at);
});

test("scenario 2: a server is switched off and on again, and the chat has its tools", async ({
  daemon,
  model,
  open,
}) => {
  // covers: MGR-S2, MGR-17..19, MGR-21, MGR-23, MGR-25, MGR-27
  const note = join(daemon.home, "note.txt");
  writeFileSync(note, "こんにちは from the file\n");
  await daemon.register({ ...FILESYSTEM, args: [...PACKAGE, daemon.home] });
  const page = await open("/");
  const { name } = FILESYSTEM;
  await showsStatus(page, name, "Connected");

  // 1 and 2: off.
  await toggle(page, name).click();
  await showsStatus(page, name, "Stopped");
  await isOn(page, name, false);
  expect(await daemon.server(name)).toMatchObject({ status: "stopped", pid: null, enabled: false });

  // 3 and 4: on.
  await toggle(page, name).click();
  await showsStatus(page, name, "Connected");
  await isOn(page, name, true);

  // 5: the model is offered the tool that reads a file, calls it, and its card shows the file.
  await page.getByRole("link", named("Chat")).click();
  await page.getByRole("button", { name: /^\d+ tools · / }).waitFor();
  await ask(page, "Which tools do you have?");
  await log(page).getByText("That is all.").waitFor();
  await finished(page);
  const offered: string[] = model.requests[0]!.tools!.map((tool) => tool.function.name);
  const read = offered.find((tool) => tool.includes("read_text_file")) ?? "";
  expect(offered, "tools that the model is offered").toContain(read);
  model.says({ calls: [{ name: read, arguments: { path: note } }] }, { text: ["It greets you."] });
  await ask(page, "Read note.txt");
  await log(page).getByText("It greets you.").waitFor();
  const call = card(page, 1, "read_text_file");
  await call.getByText("Done", { exact: true }).waitFor();
  const result = await unfold(call, "Result");
  await result.getByText("こんにちは from the file").first().waitFor();
});

test("scenario 3: a server that does not start shows why, is repaired, and starts", async ({ daemon, open }) => {
  // covers: MGR-S3, MGR-14, MGR-16, MGR-22, MGR-28
  await daemon.wayward("bystander");
  const page = await open("/");
  const name = "Broken";
  // 1: a command that does not exist.
  const dialog = await fillNewServer(page, { name, command: "/no/such/program" });
  await dialog.getByRole("checkbox", named("Enabled")).uncheck();
  await dialog.getByRole("button", named("Save")).click();
  await showsStatus(page, name, "Stopped");

  // 2 and 3: switched on, it fails and is off again.
  await toggle(page, name).click();
  await showsStatus(page, name, "Error");
  await isOn(page, name, false);

  // 4: the details.
  const show = row(page, name).getByRole("button", named(`Show error for ${name}`));
  await until(() => show.getAttribute("aria-expanded")).toBe("false");
  await show.click();
  await until(() => show.getAttribute("aria-expanded")).toBe("true");
  const details = page.getByRole("region", named(`Error details for ${name}`));
  await details.getByText("/no/such/program").first().waitFor();

  // 5: the command is repaired and saved; nothing else is touched. This program exits at once, so
  // that there is an exit code and output on stderr to show.
  const edit = page.getByRole("dialog", named(`Edit ${name}`));
  const repair = async (draft: { command?: string; args: string }) => {
    await row(page, name)
      .getByRole("button", named(`Edit ${name}`))
      .click();
    await fillForm(edit, draft);
    await edit.getByRole("button", named("Save and start")).click();
    await edit.waitFor({ state: "detached" });
  };
  await repair({ command: WAYWARD, args: "--exit-at-start\n7" });
  await until(async () => (await daemon.server(name)).error?.exit_code).toBe(7);
  await showsStatus(page, name, "Error");
  await details.getByText("wayward: cannot start, exiting with 7").waitFor();
  await isOn(page, name, false);
  await repair({ args: "" });

  // 6: it starts.
  await showsStatus(page, name, "Connected");
  await isOn(page, name, true);
  expect(await daemon.server(name)).toMatchObject({ status: "ready", enabled: true });
  await showsStatus(page, "bystander", "Connected");
});
