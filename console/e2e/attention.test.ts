// Servers that need a person: a crash loop and a server that does not answer, in the row and on every page.
import type { Page } from "playwright-core";
import { named, row, showsStatus } from "./support/screen";
import { test, until } from "./support/test";

const health = (page: Page) => page.getByRole("status", named("Health"));

test("a crash loop is shown in the server's row, on its tabs and on every other page", async ({ daemon, open }) => {
  await daemon.wayward("steady");
  await daemon.wayward("flaky", ["--crash-when-ready", "20"]);
  const page = await open("/");
  await row(page, "flaky")
    .getByText(/^Crash loop: restarts wait \d+ s$/)
    .waitFor();
  await until(() => row(page, "steady").getByText("Crash loop").count()).toBe(0);
  const link = health(page).getByRole("link", named("flaky: Crash loop"));
  for (const place of ["Activity", "Environments", "Settings", "Chat"]) {
    await page.getByRole("link", named(place)).click();
    await page.getByRole("heading", { level: 1, ...named(place) }).waitFor();
    await link.waitFor();
  }
  await link.click();
  await page.getByRole("heading", { level: 1, ...named("flaky") }).waitFor();
  const note = page.getByRole("note", named("Needs attention"));
  await note.getByText(/^Crash loop: restarts wait \d+ s$/).waitFor();
  await page.getByRole("tab", { name: /^Logs/ }).click();
  await page.getByRole("log", named("Server log")).waitFor();
  await note.waitFor();
});

test("a server that does not answer is marked until it answers again", async ({ daemon, open }) => {
  const heartbeat = { interval_ms: 100, timeout_ms: 200 };
  await daemon.wayward("mute", [], { heartbeat });
  await daemon.wayward("deaf", [], { heartbeat });
  const page = await open("/");
  await showsStatus(page, "mute", "Connected");
  const pid = Number((await daemon.call("mute", "stop")).body.result.content[0].text);
  await showsStatus(page, "mute", "Not responding");
  await row(page, "mute").getByText("Not answering: no answer to a heartbeat within 200 ms").waitFor();
  await health(page).getByRole("link", named("mute: Not responding")).click();
  await page.getByRole("note", named("Needs attention")).getByText("Not responding").waitFor();

  // Two of them are a filter of the list.
  const other = Number((await daemon.call("deaf", "stop")).body.result.content[0].text);
  await health(page).getByRole("link", named("2 servers need attention")).click();
  await until(() => page.getByRole("rowheader").allTextContents()).toEqual(["deaf", "mute"]);
  process.kill(other, "SIGCONT");
  await until(() => page.getByRole("rowheader").allTextContents()).toEqual(["mute"]);
  process.kill(pid, "SIGCONT");
  await page.getByText("No match").waitFor();
  await until(() => health(page).textContent()).toBe("2 up");
});
