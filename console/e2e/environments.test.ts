// Environments: those that agents made are seen, looked into and destroyed; and the host check.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { findings } from "./support/axe";
import type { Daemon } from "./support/daemon";
import { IMAGE, Repository } from "./support/repository";
import { named } from "./support/screen";
import { expect, test, until } from "./support/test";

/** The part of the page that is about one repository. */
const partOf = (page: Page, repository: Repository) => page.getByRole("region", named(`Repository ${repository.path}`));

async function withRepositories(
  daemon: Daemon,
  names: string[],
  work: (...repositories: Repository[]) => Promise<void>,
): Promise<void> {
  const repositories = names.map((name) => Repository.prepare(daemon, name));
  try {
    await work(...repositories);
  } finally {
    for (const repository of repositories) repository.clear();
  }
}

test("without environments the page says how to begin, and what the host has", async ({ open }) => {
  const page = await open("/");
  await page.getByRole("navigation", named("Main")).getByRole("link", named("Environments")).click();
  await page.getByRole("heading", { level: 1, ...named("Environments") }).waitFor();
  await page.getByText("No environments yet").waitFor();
  await page.getByText("cofer init", { exact: true }).waitFor();
  await page.getByText('"environments"').waitFor();
  const table = page.getByRole("table", named("Host check"));
  await table.waitFor();
  const program = (name: string) => table.getByRole("row").filter({ has: page.getByRole("rowheader", named(name)) });
  for (const name of ["git", "podman", "runsc", "node", "npx", "uvx", "python3"]) await program(name).waitFor();
  await program("git")
    .getByText(/^git version/)
    .waitFor();
  await program("git")
    .getByText(/\/git$/)
    .waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.keyboard.press("g");
  await page.keyboard.press("e");
  await page.getByRole("heading", { level: 1, ...named("Environments") }).waitFor();
});

test("an agent's environment is shown with its commands, ports, log and diff", async ({ daemon, open }) => {
  await withRepositories(daemon, ["shop", "idle"], async (shop, idle) => {
    const page = await open("/environments");
    await partOf(page, idle).getByText("No environments here").waitFor();
    const id = await shop.create("Add login");
    await shop.command(id, "echo more >> README; echo new > login.txt; echo 図 > 設計.txt", {
      explanation: "Say more",
    });
    await shop.command(id, "exit 3");
    const served = await shop.command(id, "httpd -f -p 8080", { background: true, ports: [8080] });
    const address = served.endpoints["8080"].host_external.replace("tcp://", "");

    const card = partOf(page, shop).getByRole("article", named("Add login"));
    await card.waitFor();
    await card.getByText("cofer/add-login", { exact: true }).waitFor();
    await card.getByText(IMAGE, { exact: true }).waitFor();
    await card.getByText("Running", { exact: true }).first().waitFor();
    await card.getByText(`8080 → ${address}`, { exact: true }).waitFor();
    const commands = card.getByRole("list", named("Last commands of add-login")).getByRole("listitem");
    await until(() => commands.count()).toBe(3);
    const command = (text: string) => commands.filter({ hasText: text });
    await command("exit 3").getByText("Exit 3", { exact: true }).waitFor();
    await command("echo more").getByText("Exit 0", { exact: true }).waitFor();
    await command("httpd").getByText("Running", { exact: true }).waitFor();

    await card.getByRole("button", named("Show log of add-login")).click();
    const log = page.getByRole("dialog", named("Log of add-login"));
    const step = log.getByRole("list", named("Steps")).getByRole("listitem");
    await step.getByText("Say more", { exact: true }).waitFor();
    await step.getByText("echo more >> README; echo new > login.txt; echo 図 > 設計.txt").waitFor();
    expect(await findings(page)).toEqual([]);
    await log.getByRole("button", named("Close")).click();

    await card.getByRole("button", named("Show diff of add-login")).click();
    const diff = page.getByRole("dialog", named("Diff of add-login"));
    await diff.getByText("3 changed files").waitFor();
    const readme = diff.getByRole("region", named("Changes of README"));
    await readme.getByText("+more", { exact: true }).waitFor();
    await diff.getByRole("region", named("Changes of login.txt")).getByText("+new", { exact: true }).waitFor();
    await diff.getByRole("region", named("Changes of 設計.txt")).getByText("+図", { exact: true }).waitFor();
    expect(await findings(page)).toEqual([]);
    await page.keyboard.press("Escape");
    await diff.waitFor({ state: "detached" });
    expect(await findings(page)).toEqual([]);
  });
});

test("destroying names what goes, and the branch stays unless it is asked for", async ({ daemon, open }) => {
  await withRepositories(daemon, ["one", "two"], async (one, two) => {
    // The same id twice: the repository tells them apart.
    await one.create("Try");
    await two.create("Try");
    await two.command("try", "echo work > done");
    const page = await open("/environments");
    const destroy = (repository: Repository) => partOf(page, repository).getByRole("button", named("Destroy try"));
    await destroy(one).click();
    const question = page.getByRole("alertdialog", named("Destroy try?"));
    await question.getByText(join(one.path, ".cofer/worktrees/try"), { exact: true }).waitFor();
    await question.getByText("The branch cofer/try with its work stays.").waitFor();
    expect(await findings(page)).toEqual([]);
    await question.getByRole("button", named("Cancel")).click();
    await question.waitFor({ state: "detached" });
    expect(existsSync(join(one.path, ".cofer/worktrees/try"))).toBe(true);

    await destroy(one).click();
    await question.getByRole("button", named("Destroy")).click();
    await partOf(page, one).getByText("No environments here").waitFor();
    expect(existsSync(join(one.path, ".cofer/worktrees/try"))).toBe(false);
    expect(one.branches()).toContain("cofer/try");
    expect(existsSync(join(two.path, ".cofer/worktrees/try/done"))).toBe(true);

    await destroy(two).click();
    await question.getByRole("checkbox", named("Also delete the branch with its work")).check();
    await question.getByText("cofer/try", { exact: true }).waitFor();
    await question.getByRole("button", named("Destroy")).click();
    await partOf(page, two).getByText("No environments here").waitFor();
    expect(two.branches()).not.toContain("cofer/try");
  });
});

test("a destroy that fails says why and what to do", async ({ daemon, open }) => {
  await withRepositories(daemon, ["gone"], async (gone) => {
    await gone.create("Here");
    const page = await open("/environments");
    await partOf(page, gone).getByRole("button", named("Destroy here")).click();
    // Meanwhile somebody else destroys it.
    gone.clear();
    const question = page.getByRole("alertdialog", named("Destroy here?"));
    await question.getByRole("button", named("Destroy")).click();
    const alert = question.getByRole("alert", named("Could not destroy “here”"));
    await alert
      .getByText(/not found|no repository/i)
      .first()
      .waitFor();
  });
});

test("the page is Japanese, dark and fits a phone", async ({ daemon, open }) => {
  await withRepositories(daemon, ["a-repository-with-quite-a-long-name"], async (repository) => {
    await repository.create("日本語の題名と very-long-words-that-have-to-be-broken-somewhere");
    const phone = { viewport: { width: 375, height: 760 }, touch: true };
    const page = await open("/environments", { lang: "ja", theme: "dark", ...phone });
    await page.getByRole("heading", { level: 1, ...named("環境") }).waitFor();
    await page.getByRole("article").getByText("稼働中").waitFor();
    await page.getByRole("table", named("ホストの確認")).getByRole("rowheader", named("git")).waitFor();
    const width = () => page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    await until(width).toBeLessThanOrEqual(0);
    expect(await findings(page)).toEqual([]);
    await page.getByRole("button", { name: /の差分を表示$/ }).tap();
    await page.getByText("変更はまだありません").waitFor();
    await until(width).toBeLessThanOrEqual(0);
  });
});

test("a server's overview tells clients how to reach it, with the token only on request", async ({ daemon, open }) => {
  await daemon.wayward("my files");
  const page = await open("/servers/my%20files/overview");
  const main = page.getByRole("main");
  await main.getByText(`${daemon.url}/mcp/my%20files`, { exact: true }).waitFor();
  const snippet = (client: string) => main.getByRole("region", named(`Configuration for ${client}`));
  expect(JSON.parse((await snippet("stdio").textContent())!).mcpServers["my-files"]).toEqual({
    command: "cofer",
    args: ["connect", "my files"],
  });
  await main.getByRole("tab", named("Claude Code")).click();
  await snippet("Claude Code").getByText("claude mcp add").waitFor();
  expect(await main.textContent()).not.toContain(daemon.token);
  await main.getByRole("checkbox", { name: /^Include the access token/ }).check();
  await until(() => snippet("Claude Code").textContent()).toContain(`Bearer ${daemon.token}`);
  await main.getByText("All servers", { exact: true }).click();
  await main.getByText(`${daemon.url}/mcp`, { exact: true }).waitFor();
  expect(await findings(page)).toEqual([]);
});

test("what others add, rename and remove is on the list without asking for it", async ({ daemon, open }) => {
  const page = await open("/");
  await page.getByText("No servers yet").waitFor();
  await page.getByText("Live", { exact: true }).waitFor();
  await daemon.wayward("other", [], { enabled: false });
  await page.getByRole("rowheader", named("other")).waitFor();
  await daemon.ask("PATCH", "/mcp/servers/other", { name: "renamed" });
  await page.getByRole("rowheader", named("renamed")).waitFor();
  await daemon.ask("DELETE", "/mcp/servers/renamed");
  await page.getByText("No servers yet").waitFor();
});

test("a repository's secrets are allowed before an environment is made, and revoked", async ({ daemon, open }) => {
  await withRepositories(daemon, ["greedy"], async (greedy) => {
    greedy.write(".cofer/environment.json", JSON.stringify({ secrets: ["WHERE=env://HOME"] }));
    const page = await open("/environments");
    const part = partOf(page, greedy);
    await part.getByText("the variable HOME").waitFor();
    await expect(greedy.create("Early")).rejects.toThrow(/cofer env allow/);
    expect(await findings(page)).toEqual([]);
    await part.getByRole("button", named("Allow WHERE")).click();
    await part.getByRole("button", named("Revoke WHERE")).waitFor();
    const id = await greedy.create("Allowed");
    const ran = await greedy.command(id, 'test -n "$WHERE" && echo $WHERE');
    expect(ran.stdout).toBe("********\n");
    await part.getByRole("button", named("Revoke WHERE")).click();
    await part.getByRole("button", named("Allow WHERE")).waitFor();
    await expect(greedy.command(id, "true")).rejects.toThrow(/cofer env allow/);
  });
});
