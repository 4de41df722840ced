// How large and how quick the first page is. Sizes are promised; times depend on the machine and
// are only told.
import { gzipSync } from "node:zlib";
import { named, showsStatus } from "./support/screen";
import { expect, test } from "./support/test";

const MOST_SCRIPT = 170_000;
const MOST_OF_ALL = 300_000;

test("the first page loads at most 170 kB of compressed script", async ({ daemon, open }) => {
  await daemon.wayward("some");
  const page = await open("/");
  await showsStatus(page, "some", "Connected");
  const paths = await page.evaluate(() =>
    performance.getEntriesByType("resource").map(({ name }) => new URL(name).pathname),
  );
  const scripts = [...new Set(paths.filter((path) => path.endsWith(".js")))];
  expect(scripts.length).toBeGreaterThan(1);
  let size = 0;
  for (const path of scripts) {
    const answer = await fetch(daemon.url + path, { headers: { "Accept-Encoding": "identity" } });
    size += gzipSync(Buffer.from(await answer.arrayBuffer()), { level: 9 }).length;
  }
  console.info(`first page: ${scripts.length} scripts, ${(size / 1000).toFixed(1)} kB gzip`);
  expect(size).toBeLessThanOrEqual(MOST_SCRIPT);
});

test("everything together is small, and every file of it that shrinks is served compressed", async ({
  daemon,
  open,
}) => {
  const page = await open("/");
  await page.getByText("No servers yet").waitFor();
  const seen = new Set<string>();
  const queue = await page.evaluate(() =>
    performance
      .getEntriesByType("resource")
      .map(({ name }) => new URL(name).pathname)
      .filter((path) => path.startsWith("/assets/")),
  );
  let size = 0;
  while (queue.length > 0) {
    const path = queue.pop()!;
    if (seen.has(path)) continue;
    seen.add(path);
    const answer = await fetch(daemon.url + path, { headers: { "Accept-Encoding": "gzip" } });
    expect(answer.status, path).toBe(200);
    const text = await answer.text();
    if (text.length > 1000) expect(answer.headers.get("content-encoding"), path).toBe("gzip");
    if (path.endsWith(".js")) size += gzipSync(text, { level: 9 }).length;
    for (const [, name] of text.matchAll(/["'`](?:\.\/|\/?assets\/)([\w.-]+\.(?:js|css))["'`]/g))
      queue.push(`/assets/${name}`);
  }
  console.info(`whole console: ${seen.size} files, ${(size / 1000).toFixed(1)} kB gzip of script`);
  expect(seen.size).toBeGreaterThan(5);
  expect(size).toBeLessThanOrEqual(MOST_OF_ALL);
});

test("how long the first page and a change of status take is told", async ({ daemon, open }) => {
  await daemon.wayward("timed");
  const page = await open("/");
  await showsStatus(page, "timed", "Connected");
  await page.reload();
  await showsStatus(page, "timed", "Connected");
  const shown = await page.evaluate(() => {
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    const navigation = performance.getEntriesByType("navigation")[0] as PerformanceNavigationTiming;
    return { paint: paint?.startTime ?? 0, interactive: navigation.domInteractive };
  });
  console.info(
    `second visit: interactive after ${Math.round(shown.interactive)} ms, first paint after ${Math.round(shown.paint)} ms`,
  );

  // From the moment the daemon says it happened to the moment it is in the page, on one clock.
  const times: number[] = [];
  for (const [action, word] of [
    ["disable", "Stopped"],
    ["enable", "Connected"],
    ["disable", "Stopped"],
    ["enable", "Connected"],
  ] as const) {
    const event = nextEvent(daemon.url, daemon.token, word === "Stopped" ? "stopped" : "ready");
    const onScreen = page.evaluate(
      (wanted) =>
        new Promise<number>((resolve) => {
          const look = () => [...document.querySelectorAll("[role=cell]")].some((cell) => cell.textContent === wanted);
          const observer = new MutationObserver(() => {
            if (!look()) return;
            observer.disconnect();
            resolve(Date.now());
          });
          observer.observe(document.body, { childList: true, subtree: true, characterData: true });
          // A change that was quicker than this script is on screen already.
          if (look()) resolve(Date.now());
        }),
      word,
    );
    await event.opened;
    await daemon.ask("POST", `/mcp/servers/timed/${action}?wait=30`);
    const at = Date.parse(await event.at);
    times.push((await onScreen) - at);
  }
  console.info(`a change of status is on screen after ${times.join(", ")} ms`);
  expect(times).toHaveLength(4);
  await page.getByRole("heading", { level: 1, ...named("Servers") }).waitFor();
});

/** When the next change to `status` happened, as the event stream tells it. */
function nextEvent(url: string, token: string, status: string): { opened: Promise<unknown>; at: Promise<string> } {
  const answer = fetch(`${url}/api/v1/events`, { headers: { Authorization: `Bearer ${token}` } });
  const read = async () => {
    const reader = (await answer).body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) throw new Error("the event stream ended");
      text += value;
      const changes = [...text.matchAll(/^data: ?(\{.*\})$/gm)].map(([, data]) => JSON.parse(data!));
      const change = changes.find((data) => data.status === status);
      if (!change) continue;
      await reader.cancel();
      return change.at as string;
    }
  };
  return { opened: answer, at: read() };
}
