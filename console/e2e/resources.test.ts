// The resources and prompts of a server.
import { readFileSync } from "node:fs";
import { EVERYTHING } from "./support/places";
import { named, openTab } from "./support/screen";
import { expect, test, until } from "./support/test";

test("resources are counted, searched and filtered by type", async ({ daemon, open }) => {
  // covers: MGR-41, MGR-42, MGR-44..51
  await daemon.wayward("many", ["--resources", "31"]);
  const page = await open("/servers/many/resources");
  const list = page.getByRole("list", named("Resources"));
  const count = (shown: number) =>
    page
      .getByRole("status")
      .filter({ hasText: new RegExp(`^${shown} of 31 resources$`) })
      .waitFor();
  await count(31);
  for (const text of [
    "wayward:///resource/0",
    "resource-0000",
    "made-up resource 0",
    "text/markdown",
    "image/png",
    "application/octet-stream",
  ]) {
    await list.getByText(text, { exact: true }).first().waitFor();
  }
  const filter = page.getByRole("group", named("MIME filter"));
  await until(() => filter.getByRole("radio", named("All")).isChecked()).toBe(true);
  for (const [kind, shown] of [
    ["Text", 11],
    ["Image", 10],
    ["Other", 10],
    ["All", 31],
  ] as const) {
    await filter.getByRole("radio", named(kind)).check({ force: true });
    await count(shown);
    await until(() => list.getByRole("listitem").count()).toBe(shown);
  }
  const search = page.getByRole("searchbox", named("Search resources"));
  for (const [text, shown] of [
    ["resource-0007", 1],
    ["RESOURCE/3", 2],
    ["made-up", 0],
    ["", 31],
  ] as const) {
    await search.fill(text);
    await count(shown);
  }
});

test("a text, a picture and bytes are previewed each in its way", async ({ daemon, open }) => {
  await daemon.wayward("kinds", ["--resources", "3"]);
  const page = await open("/servers/kinds/resources");
  await page.getByRole("button", named("Preview resource-0000")).click();
  const dialog = page.getByRole("dialog", named("resource-0000"));
  await dialog.getByText(/made up/).waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });

  await page.getByRole("button", named("Preview resource-0001")).click();
  const image = page.getByRole("dialog", named("resource-0001")).getByRole("img");
  await until(() => image.evaluate((element) => (element as HTMLImageElement).naturalWidth)).toBe(1);
  await page.keyboard.press("Escape");

  await page.getByRole("button", named("Preview resource-0002")).click();
  const binary = page.getByRole("dialog", named("resource-0002"));
  const saved = page.waitForEvent("download");
  await binary.getByRole("button", named("Download")).first().click();
  expect([...readFileSync(await (await saved).path())]).toEqual([0, 1, 2, 3]);
});

test("a resource that cannot be read says why", async ({ daemon, open }) => {
  // covers: MGR-43, MGR-56
  await daemon.wayward("flaky", ["--resources", "3"]);
  const page = await open("/");
  let refuse = true;
  await page.route("**/api/v1/**/resources", async (route) => {
    if (!refuse) return route.continue();
    await route.fulfill({
      status: 502,
      json: { error: { kind: "mcp_error", message: "the server answered an error", trace_id: "0" } },
    });
  });
  await page.goto("/servers/flaky/resources");
  await page
    .getByRole("main")
    .getByText("Loading resources…")
    .or(page.getByRole("alert", named("Could not load resources")))
    .first()
    .waitFor();
  const alert = page.getByRole("alert", named("Could not load resources"));
  await alert.waitFor();
  refuse = false;
  await alert.getByRole("button", named("Retry")).click();
  await page.getByRole("list", named("Resources")).getByText("resource-0001", { exact: true }).waitFor();
  await page.route("**/call", (route) =>
    route.fulfill({
      status: 502,
      json: { error: { kind: "mcp_error", message: "Resource not found", trace_id: "0" } },
    }),
  );
  await page.getByRole("button", named("Preview resource-0001")).click();
  await page
    .getByRole("dialog")
    .getByRole("alert", named("Could not read the resource"))
    .getByText("Resource not found")
    .waitFor();
});

test("a real server's templates and prompts are filled in and shown", async ({ daemon, open }) => {
  await daemon.register({ name: "every", command: EVERYTHING, args: [] });
  const page = await open("/servers/every/resources");
  await page.getByText("Resource templates", { exact: true }).click();
  const template = page
    .getByRole("listitem")
    .filter({ hasText: "demo://resource/dynamic/text/" })
    .filter({ has: page.locator("form") });
  await template.getByRole("textbox").fill("7");
  await template.getByRole("button", { name: /^Read / }).click();
  await page
    .getByRole("dialog")
    .getByText(/Resource 7/)
    .first()
    .waitFor();
  await page.keyboard.press("Escape");

  await openTab(page, "Prompts");
  const prompt = page.getByRole("list", named("Prompts")).getByRole("listitem").filter({ hasText: "args-prompt" });
  await prompt.getByRole("button", named("Show messages of args-prompt")).click();
  const city = prompt.getByRole("textbox", named("city"));
  await until(() => city.getAttribute("aria-invalid")).toBe("true");
  await city.fill("東京");
  await prompt.getByRole("button", named("Show messages of args-prompt")).click();
  await page.getByRole("region", named("Messages of args-prompt")).getByText(/東京/).waitFor();
});
