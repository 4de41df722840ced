// The log of a server, as it is written.
import { readFileSync } from "node:fs";
import { named, toggle } from "./support/screen";
import { expect, test, until } from "./support/test";

test("the log shows the life of a server and its stderr as they happen", async ({ daemon, open }) => {
  // covers: MGR-15
  await daemon.wayward("talker", [], { enabled: false });
  const page = await open("/servers/talker/logs");
  const log = page.getByRole("log", named("Server log"));
  await log.waitFor();
  await toggle(page, "talker").click();
  await log.getByText("starting", { exact: true }).waitFor();
  await log.getByText(/^ready: protocol .*, pid \d+$/).waitFor();
  await daemon.call("talker", "stderr", { text: "stderr すぐに" });
  await log.getByText("stderr すぐに", { exact: true }).waitFor();
  await toggle(page, "talker").click();
  await log.getByText("stopped", { exact: true }).waitFor();
});

test("lines are chosen by where they come from and by search, copied and saved", async ({ daemon, open }) => {
  await daemon.wayward("sorted");
  for (const text of ["apple pie", "apple juice", "plum"]) await daemon.call("sorted", "stderr", { text });
  const page = await open("/servers/sorted/logs");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const log = page.getByRole("log", named("Server log"));
  await log.getByText("plum", { exact: true }).waitFor();
  // Each part of the daemon has its tag and its checkbox; a call is two lines.
  for (const [tag, line] of [
    ["[START]", "starting"],
    ["[MCP]", /^ready: protocol /],
    ["[TOOLS]", "stderr: call started"],
  ] as const) {
    const found = log.getByText(line, { exact: true });
    await found.first().waitFor();
    await until(() => log.getByText(tag, { exact: true }).count()).toBeGreaterThan(0);
    await page.getByRole("checkbox", named(tag)).uncheck();
    await until(() => found.count()).toBe(0);
    await until(() => log.getByText(tag, { exact: true }).count()).toBe(0);
  }
  await page.getByRole("searchbox", named("Search the log")).fill("apple");
  await until(() => log.locator("mark").allTextContents()).toEqual(["apple", "apple"]);
  await until(() => log.getByText("plum", { exact: true }).count()).toBe(0);
  const saved = page.waitForEvent("download");
  await page.getByRole("button", named("Download")).click();
  const text = readFileSync(await (await saved).path(), "utf8");
  expect(text.split("\n").map((line) => line.replace(/^\S+ \S+ /, ""))).toEqual(["apple pie", "apple juice"]);
  await page.getByRole("button", named("Copy")).click();
  await until(() => page.evaluate(() => navigator.clipboard.readText())).toBe(text);
  await page.getByRole("checkbox", named("stderr")).uncheck();
  await page.getByText("No line matches.").waitFor();
});

test("who reads further up is not carried away by new lines", async ({ daemon, open }) => {
  await daemon.wayward("busy");
  await daemon.call("busy", "stderr", { text: "early line", times: 300 });
  const page = await open("/servers/busy/logs");
  const log = page.getByRole("log", named("Server log"));
  const follow = page.getByRole("checkbox", named("Follow"));
  const atEnd = () => log.evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight < 60);
  await log.getByText("early line").first().waitFor();
  await until(atEnd).toBe(true);
  await daemon.call("busy", "stderr", { text: "newest", times: 50 });
  await log.getByText("newest").first().waitFor();
  await until(atEnd).toBe(true);
  await log.hover();
  await page.mouse.wheel(0, -1500);
  await until(() => follow.isChecked()).toBe(false);
  const top = await log.evaluate((box) => box.scrollTop);
  await daemon.call("busy", "stderr", { text: "unseen", times: 50 });
  await page
    .getByText(/^[\d,]+ of [\d,]+ lines/)
    .filter({ hasText: /4\d\d/ })
    .waitFor();
  expect(await log.evaluate((box) => box.scrollTop)).toBeLessThanOrEqual(top + 1);
  await page.getByRole("button", named("Jump to the end")).click();
  await log.getByText("unseen").first().waitFor();
  await until(() => follow.isChecked()).toBe(true);
  await until(atEnd).toBe(true);
});
