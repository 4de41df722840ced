// The console on a phone.
import { EVERYTHING } from "./support/places";
import { fillNewServer, fits, isOn, named, openTab, row, showsStatus, toggle } from "./support/screen";
import { expect, test, until } from "./support/test";

const PHONE = { viewport: { width: 375, height: 760 }, touch: true };

test("every page fits the width of a phone", async ({ daemon, open }) => {
  await daemon.register({ name: "a server with quite a long name for a phone", command: EVERYTHING, args: [] });
  await daemon.wayward("failed", ["--exit-at-start", "2"], { description: "x".repeat(200) });
  await daemon.call("a server with quite a long name for a phone", "echo", { message: "hello" });
  const page = await open("/", PHONE);
  const base = "/servers/a%20server%20with%20quite%20a%20long%20name%20for%20a%20phone";
  for (const [path, sign] of [
    ["/", "failed"],
    ["/activity", "echo"],
    ["/environments", "cofer init"],
    ["/settings", "Appearance"],
    ["/chat", "No model is set up yet"],
    ["/servers/failed/overview", "wayward: cannot start, exiting with 2"],
    [`${base}/overview`, "How it runs"],
    [`${base}/tools`, "echo"],
    [`${base}/resources`, "architecture.md"],
    [`${base}/prompts`, "args-prompt"],
    [`${base}/logs`, "starting"],
    [`${base}/settings`, "Environment variables"],
  ] as const) {
    await page.goto(path);
    await page.getByText(sign).filter({ visible: true }).first().waitFor();
    await fits(page);
  }
});

test("a call's details open on a phone, with what there are no columns for", async ({ daemon, open }) => {
  await daemon.register({ name: "every", command: EVERYTHING, args: [] });
  await daemon.call("every", "echo", { message: "hello ".repeat(50) });
  const page = await open("/activity", PHONE);
  const table = page.getByRole("table", named("Calls"));
  await table.getByRole("button", { name: /^Details of echo at/ }).tap();
  await table.getByText("Call id").waitFor();
  for (const fact of ["Source", "Duration"])
    await table.getByRole("term").filter({ hasText: fact }).filter({ visible: true }).waitFor();
  await table.getByRole("button", named("Replay")).waitFor();
  await fits(page);
});

test("the section that is open stays in sight when the counts of others come", async ({ daemon, open }) => {
  await daemon.register({ name: "every", command: EVERYTHING, args: [] });
  const page = await open("/servers/every/settings", PHONE);
  await page.getByRole("tab", { name: /^Prompts ?\d+$/ }).waitFor();
  await page.getByRole("tab", { name: /^Resources ?\d+$/ }).waitFor();
  const right = async () => {
    const box = (await page.getByRole("tab", { name: /^Settings/ }).boundingBox())!;
    return box.x + box.width;
  };
  await until(right).toBeLessThanOrEqual(PHONE.viewport.width);
});

test("a row is a block that is still a row of a table", async ({ daemon, open }) => {
  await daemon.wayward("pocket");
  const page = await open("/", PHONE);
  await showsStatus(page, "pocket", "Connected");
  await until(() => page.getByRole("table", named("Servers")).isVisible()).toBe(true);
  await row(page, "pocket").getByRole("rowheader", named("pocket")).waitFor();
  await row(page, "pocket").locator("code").waitFor();
  await toggle(page, "pocket").tap();
  await showsStatus(page, "pocket", "Stopped");
  await isOn(page, "pocket", false);
  const navigation = (await page.getByRole("navigation", named("Main")).boundingBox())!;
  expect(navigation.y + navigation.height).toBeCloseTo(PHONE.viewport.height, 0);
  await page.getByRole("navigation", named("Main")).getByRole("link", named("Activity")).tap();
  await page.getByRole("heading", { level: 1, ...named("Activity") }).waitFor();
});

test("dialogs fill the screen, and a server is added and run from them", async ({ daemon, open }) => {
  const page = await open("/", PHONE);
  const form = await fillNewServer(page, { name: "thumb", command: EVERYTHING });
  const box = (await form.boundingBox())!;
  expect([box.x, box.y, box.width, box.height]).toEqual([0, 0, PHONE.viewport.width, PHONE.viewport.height]);
  await form.getByRole("button", named("Save")).tap();
  await showsStatus(page, "thumb", "Connected");
  await row(page, "thumb").getByRole("link", named("thumb")).tap();
  await openTab(page, "Tools");
  await page.getByRole("button", named("Run echo")).tap();
  const dialog = page.getByRole("dialog", named("Run echo"));
  await dialog.getByRole("textbox", named("message")).fill("from a phone");
  await dialog.getByRole("button", named("Run")).tap();
  await dialog.getByRole("region", named("Result")).getByText("Echo: from a phone").first().waitFor();
  await fits(page);
  await dialog.getByRole("button", named("Close")).tap();
  await openTab(page, "Logs");
  await page.getByRole("log", named("Server log")).waitFor();
  expect((await daemon.servers()).map((server) => server.name)).toEqual(["thumb"]);
});

test("what is touched is large enough for a finger", async ({ daemon, open }) => {
  await daemon.wayward("finger");
  const page = await open("/", PHONE);
  await showsStatus(page, "finger", "Connected");
  const small = await page.evaluate(() => {
    const controls = [...document.querySelectorAll<HTMLElement>("button, a[href], select, input")];
    return controls
      .filter(
        (control) =>
          control.checkVisibility() && control.getBoundingClientRect().top >= 0 && !control.closest(".sr-only"),
      )
      .map((control) => ({
        name: control.getAttribute("aria-label") ?? control.textContent,
        box: control.getBoundingClientRect(),
      }))
      .filter(({ box }) => box.height < 24 && box.height > 0)
      .map(({ name, box }) => `${name}: ${box.width}×${box.height}`);
  });
  // The switch is drawn smaller than the place that can be touched around it.
  expect(small.filter((line) => !line.startsWith("Enable ") && !line.startsWith("finger"))).toEqual([]);
});
