// What happens elsewhere is on the page by itself; a daemon that goes away is missed honestly.
import { readFileSync } from "node:fs";
import { named, row, showsStatus, toggle } from "./support/screen";
import { expect, test, until } from "./support/test";

/** While the daemon is away, requests to it fail: that is what these tests are about. */
const AWAY = {
  forgive: /ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/,
};

test("what another client does is on every open page, and told to screen readers", async ({ daemon, open }) => {
  // covers: MGR-27, MGR-29
  const first = await open("/");
  const second = await open("/servers/shared/overview");
  await daemon.wayward("shared");
  await showsStatus(first, "shared", "Connected");
  await until(() => first.getByRole("status", named("Server events")).textContent()).toBe("shared: Connected");
  await second.reload();
  await second.getByRole("main").getByText("Connected", { exact: true }).waitFor();
  await daemon.ask("POST", "/mcp/servers/shared/disable?wait=30");
  await showsStatus(first, "shared", "Stopped");
  await until(() => first.getByRole("status", named("Server events")).textContent()).toBe("shared: Stopped");
  await second.getByRole("main").getByText("Stopped", { exact: true }).waitFor();
  await daemon.ask("PATCH", "/mcp/servers/shared", { args: ["--exit-at-start", "5"], enabled: true });
  await showsStatus(first, "shared", "Error");
  await second
    .getByRole("region", named("Error details for shared"))
    .getByText(/exiting with 5/)
    .waitFor();
  await daemon.ask("DELETE", "/mcp/servers/shared");
  await first.getByText("No servers yet").waitFor();
});

test("the daemon is killed and started again under an open page", async ({ daemon, open }) => {
  await daemon.wayward("survivor");
  await daemon.wayward("idle", [], { enabled: false });
  const page = await open("/", AWAY);
  await showsStatus(page, "survivor", "Connected");
  await page.getByText("Live", { exact: true }).waitFor();

  await daemon.kill();
  await page.getByText("Reconnecting…", { exact: true }).waitFor();
  await page.getByRole("status").filter({ hasText: "Cofer is not answering" }).waitFor();
  // What was known stays to be read, and nothing can be switched.
  await row(page, "survivor").waitFor();
  await until(() => toggle(page, "survivor").isDisabled()).toBe(true);
  await until(() => page.getByRole("button", named("Delete survivor")).isDisabled()).toBe(true);

  await daemon.run();
  await daemon.wayward("newcomer");
  await page.getByText("Live", { exact: true }).waitFor();
  await page.getByRole("status").filter({ hasText: "Cofer is not answering" }).waitFor({ state: "detached" });
  await showsStatus(page, "survivor", "Connected");
  await showsStatus(page, "newcomer", "Connected");
  await until(() => toggle(page, "survivor").isDisabled()).toBe(false);
  await toggle(page, "idle").click();
  await showsStatus(page, "idle", "Connected");
});

test("a log and a form live through a restart of the daemon", async ({ daemon, open }) => {
  await daemon.wayward("logged");
  const page = await open("/servers/logged/logs", AWAY);
  const log = page.getByRole("log", named("Server log"));
  await log.getByText("starting", { exact: true }).first().waitFor();
  const other = await open("/servers/logged/settings", AWAY);
  const description = other.getByRole("main").getByRole("textbox", named("Description"));
  await description.fill("typed before");
  await daemon.kill();
  await other.getByText("Reconnecting…", { exact: true }).waitFor();
  await other.getByRole("main").getByRole("button", named("Save")).click();
  await other.getByRole("alert", named("Could not save the server")).waitFor();
  await daemon.run();
  await other.getByText("Live", { exact: true }).waitFor();
  await until(() => description.inputValue()).toBe("typed before");
  await other.getByRole("main").getByRole("button", named("Save")).click();
  await until(async () => (await daemon.server("logged")).description).toBe("typed before");
  await until(async () => (await daemon.server("logged")).status).toBe("ready");
  await page.getByText("Live", { exact: true }).waitFor();
  await daemon.call("logged", "stderr", { text: "after the restart" });
  await log.getByText("after the restart", { exact: true }).waitFor();
});

test("calls show up in the activity as they are made", async ({ daemon, open }) => {
  await daemon.wayward("worker");
  const page = await open("/activity");
  await page.getByText("No calls yet", { exact: true }).waitFor();
  await daemon.call("worker", "echo", {});
  const table = page.getByRole("table", named("Calls"));
  await table.getByRole("row").filter({ hasText: "echo" }).getByText("OK", { exact: true }).waitFor();
  await daemon.call("worker", "fail", {});
  await table.getByRole("row").filter({ hasText: "fail" }).getByText("Tool error", { exact: true }).waitFor();
  await page.getByRole("combobox", named("Result")).selectOption("failures");
  await until(() => table.getByRole("row").filter({ hasText: "echo" }).count()).toBe(0);
  expect(new URL(page.url()).searchParams.get("result")).toBe("failures");
  await table.getByRole("button", { name: /^Details of fail at/ }).click();
  await table.getByText("Call id").waitFor();
  const hung = daemon.call("worker", "sleep", { ms: 60_000 }, 60_000);
  await page.getByText("Running", { exact: true }).first().waitFor();
  await daemon.ask("POST", "/mcp/servers/worker/disable?wait=30");
  await hung;
  const saved = page.waitForEvent("download");
  await page.getByRole("button", named("Export JSONL")).click();

  const lines = readFileSync(await (await saved).path(), "utf8")
    .trim()
    .split("\n");
  expect(lines.map((line) => JSON.parse(line).tool)).toContain("echo");
});
