// Who gets in, and what a page may do.
import { named, showsStatus } from "./support/screen";
import { expect, test } from "./support/test";

test("the link signs in, and the token leaves the address at once", async ({ daemon, open }) => {
  await daemon.wayward("mine");
  const page = await open("/");
  await showsStatus(page, "mine", "Connected");
  expect(page.url()).toBe(`${daemon.url}/`);
  expect(await page.evaluate(() => JSON.stringify(performance.getEntriesByType("navigation")))).not.toContain(
    "%23token",
  );
  await page.goto("/settings");
  await page.getByRole("heading", { level: 1, ...named("Settings") }).waitFor();
  await page.getByRole("button", named("Forget the token in this browser")).click();
  await page.getByRole("heading", { level: 1, ...named("Open the console") }).waitFor();
  await page.reload();
  await page.getByRole("heading", { level: 1, ...named("Open the console") }).waitFor();
});

test("a stranger is told how to get in, and gets in with the token only", async ({ daemon, open }) => {
  await daemon.wayward("secret server");
  const page = await open("/servers/secret%20server/tools", { stranger: true });
  await page.getByRole("heading", { level: 1, ...named("Open the console") }).waitFor();
  await page.getByText("cofer console", { exact: true }).waitFor();
  expect(await page.locator("body").textContent()).not.toContain("Connected");
  const token = page.getByLabel("Access token", { exact: true });
  const enter = page.getByRole("button", named("Open"));
  await enter.click();
  await page.getByText("Access token is required").waitFor();
  await token.fill("0".repeat(64));
  await enter.click();
  await page.getByText("The daemon does not accept this token").waitFor();
  await token.fill(daemon.token);
  await enter.click();
  await page.getByRole("heading", { level: 1, ...named("secret server") }).waitFor();
});

test("what servers say is text, whatever it looks like", async ({ daemon, open }) => {
  const attack = '<img src=x onerror="window.broken=true"><script>window.broken=true</script>';
  // Not the same text: the value of a variable is masked in the log.
  const environment = { X: '<svg onload="window.broken=true">' };
  await daemon.wayward("plain", [], { description: attack, environment });
  await daemon.call("plain", "stderr", { text: attack });
  const page = await open("/servers/plain/overview");
  await page.getByRole("main").getByText(attack).first().waitFor();
  await page.goto("/servers/plain/logs");
  await page.getByRole("log").getByText(attack).waitFor();
  await page.goto("/servers/plain/tools");
  await page.getByRole("button", named("Run echo")).click();
  const dialog = page.getByRole("dialog", named("Run echo"));
  await dialog.getByRole("tab", named("JSON")).click();
  await dialog.getByRole("textbox", named("Arguments as JSON")).fill(JSON.stringify({ attack }));
  await dialog.getByRole("button", named("Run")).click();
  await dialog
    .getByRole("region", named("Result"))
    .getByText(/onerror/)
    .first()
    .waitFor();
  expect(await page.evaluate(() => "broken" in window)).toBe(false);
});

test("the page cannot run what the daemon did not serve", async ({ open }) => {
  const page = await open("/", { forgive: /content security policy|TrustedScript|violates the following/i });
  await page.getByText("No servers yet").waitFor();
  const tried = await page.evaluate(() => {
    const script = document.createElement("script");
    const text = "window.broken = true";
    let refused = "";
    try {
      script.text = text;
    } catch (error) {
      refused = String(error);
    }
    document.body.append(script);
    return { refused, broken: "broken" in window };
  });
  expect(tried.refused).toContain("TrustedScript");
  expect(tried.broken).toBe(false);
  const outside = await page.evaluate(() =>
    fetch("http://127.0.0.1:9/").then(
      () => "sent",
      () => "refused",
    ),
  );
  expect(outside).toBe("refused");
});

test("a browser that was here loads only what has changed", async ({ daemon, open }) => {
  const page = await open("/");
  await page.getByText("No servers yet").waitFor();
  await page.goto("/settings");
  await page.getByRole("heading", { level: 1, ...named("Settings") }).waitFor();
  const loaded = await page.evaluate(() => {
    const entries = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
    return entries.filter(({ name }) => /\/assets\/index-/.test(name)).map(({ transferSize }) => transferSize);
  });
  expect(loaded.length).toBeGreaterThan(0);
  expect(new Set(loaded)).toEqual(new Set([0]));

  const html = await fetch(`${daemon.url}/activity`);
  expect(html.headers.get("cache-control")).toBe("no-cache");
  const again = await fetch(`${daemon.url}/activity`, { headers: { "If-None-Match": html.headers.get("etag")! } });
  expect(again.status).toBe(304);
  const script = /src="(\/assets\/[^"]+\.js)"/.exec(await html.text())![1]!;
  const answer = await fetch(daemon.url + script, { headers: { "Accept-Encoding": "br" } });
  expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  expect(answer.headers.get("content-encoding")).toBe("br");
  expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
});
