// Much of everything: the page holds only what can be seen of it, and still answers.
import type { Locator, Page } from "playwright-core";
import { named, openTab, toggle } from "./support/screen";
import { expect, test, until } from "./support/test";

/** Many more elements than this, and a page is no longer quick. */
const MOST_ELEMENTS = 3000;

const elements = (page: Page) => page.evaluate(() => document.querySelectorAll("*").length);

/** The longest time in which the page could not react, while `work` was done. */
async function longestBlock(page: Page, work: () => Promise<unknown>): Promise<number> {
  await page.evaluate(() => {
    const seen = { longest: 0 };
    (window as unknown as { seen: typeof seen }).seen = seen;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) seen.longest = Math.max(seen.longest, entry.duration);
    }).observe({ type: "longtask" });
  });
  await work();
  return page.evaluate(() => (window as unknown as { seen: { longest: number } }).seen.longest);
}

async function scrollToEnd(page: Page, last: Locator): Promise<void> {
  await until(async () => {
    await page.evaluate(() => window.scrollTo(0, document.documentElement.scrollHeight));
    return last.isVisible();
  }).toBe(true);
}

test("a thousand tools", async ({ daemon, open }) => {
  await daemon.wayward("wide", ["--tools", "1000", "--page", "250"]);
  const page = await open("/servers/wide/tools");
  const count = (words: string) => page.getByRole("status").filter({ hasText: words }).waitFor();
  await count("1000 of 1000 tools");
  await page.getByText("tool-0000", { exact: true }).waitFor();
  expect(await elements(page)).toBeLessThan(MOST_ELEMENTS);
  const blocked = await longestBlock(page, async () => {
    await scrollToEnd(page, page.getByText("tool-0999", { exact: true }));
    await page.evaluate(() => window.scrollTo(0, 0));
    await page.getByRole("searchbox", named("Search tools")).pressSequentially("tool-07");
    await count("100 of 1000 tools");
  });
  console.info(`1,000 tools: ${await elements(page)} elements, longest task ${Math.round(blocked)} ms`);
  await page.getByRole("searchbox", named("Search tools")).fill("tool-0742");
  await count("1 of 1000 tools");
  await page.getByRole("button", named("Run tool-0742")).click();
  await page.getByRole("dialog", named("Run tool-0742")).waitFor();
});

test("ten thousand resources", async ({ daemon, open }) => {
  await daemon.wayward("deep", ["--resources", "10000", "--page", "1000"]);
  const page = await open("/servers/deep/resources");
  const count = (words: string) => page.getByRole("status").filter({ hasText: words }).waitFor();
  await count("10000 of 10000 resources");
  await page.getByText("resource-0000", { exact: true }).waitFor();
  expect(await elements(page)).toBeLessThan(MOST_ELEMENTS);
  const blocked = await longestBlock(page, async () => {
    await scrollToEnd(page, page.getByText("resource-9999", { exact: true }));
    await page.evaluate(() => window.scrollTo(0, 0));
    await page.getByRole("group", named("MIME filter")).getByRole("radio", named("Image")).check({ force: true });
    await count("3333 of 10000 resources");
    await page.getByRole("searchbox", named("Search resources")).pressSequentially("resource-99");
    await count("33 of 10000 resources");
  });
  expect(await elements(page)).toBeLessThan(MOST_ELEMENTS);
  console.info(`10,000 resources: ${await elements(page)} elements, longest task ${Math.round(blocked)} ms`);
});

test("a hundred thousand lines of log, while they are read", async ({ daemon, open }) => {
  await daemon.wayward("loud");
  const page = await open("/servers/loud/logs");
  const log = page.getByRole("log", named("Server log"));
  await log.getByText("starting", { exact: true }).waitFor();
  const lines = async () =>
    Number(
      / of ([\d,]+) lines/
        .exec((await page.getByText(/^[\d,]+ of [\d,]+ lines/).textContent()) ?? "")?.[1]
        ?.replaceAll(",", ""),
    );
  const blocked = await longestBlock(page, async () => {
    // In portions that the daemon's feed can hold, each read before the next: no line is missed.
    for (let round = 1; round <= 100; round++) {
      await daemon.call("loud", "stderr", { text: `line of round ${round} ${"=".repeat(round % 90)}`, times: 1000 });
      await until(lines).toBeGreaterThanOrEqual(round * 1000);
    }
  });
  expect(await lines()).toBe(100_000);
  expect(await elements(page)).toBeLessThan(MOST_ELEMENTS);
  await page.getByRole("searchbox", named("Search the log")).fill("round 77");
  await page.getByText(/^1,000 of 100,000 lines/).waitFor();
  await until(() => log.locator("mark").count()).toBeGreaterThan(10);
  await page.getByRole("searchbox", named("Search the log")).fill("");
  await log.getByText("line of round 100", { exact: false }).first().waitFor();
  console.info(
    `100,000 log lines: ${await lines()} kept, ${await elements(page)} elements, longest task ${Math.round(blocked)} ms`,
  );
  // More than any reader can take at once is thinned out, and the page lives through it.
  await daemon.call("loud", "stderr", { text: "flood", times: 100_000 });
  await daemon.call("loud", "stderr", { text: "after the flood" });
  await log.getByText("after the flood", { exact: true }).waitFor();
  expect(await elements(page)).toBeLessThan(MOST_ELEMENTS);
  await openTab(page, "Overview");
  await toggle(page, "loud").click();
  await page.getByRole("main").getByText("Stopped", { exact: true }).waitFor();
});

test("two hundred servers", async ({ daemon, open }) => {
  for (let n = 0; n < 200; n++)
    await daemon.ask("POST", "/mcp/servers", {
      name: `server-${String(n).padStart(3, "0")}`,
      command: "sh",
      enabled: false,
    });
  const page = await open("/");
  await page.getByRole("rowheader", named("server-199")).waitFor();
  const blocked = await longestBlock(page, async () => {
    await page.getByRole("searchbox", named("Search servers")).pressSequentially("server-19");
    await until(() => page.getByRole("rowheader").count()).toBe(10);
  });
  console.info(`200 servers: longest task ${Math.round(blocked)} ms`);
});
