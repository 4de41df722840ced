// The list of servers and what is around every page.
import { writeFileSync } from "node:fs";
import { WAYWARD } from "./support/places";
import { isOn, named, row, showsStatus, toggle } from "./support/screen";
import { expect, test, until } from "./support/test";

test("every page has the navigation, the language, the theme and one heading", async ({ open }) => {
  const page = await open("/");
  const main = page.getByRole("navigation", named("Main"));
  for (const place of ["Activity", "Settings", "Servers"]) {
    await main.getByRole("link", named(place)).click();
    await page.getByRole("heading", { level: 1, ...named(place) }).waitFor();
    await until(() => page.getByRole("heading", { level: 1 }).count()).toBe(1);
    await until(() => page.evaluate(() => document.activeElement?.tagName)).toBe("H1");
    await until(() => page.title()).toContain(place);
  }
  await page.getByText("Live", { exact: true }).waitFor();

  const theme = page.getByRole("combobox", named("Theme"));
  const html = page.locator("html");
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await theme.selectOption("dark");
  await until(() => html.getAttribute("data-theme")).toBe("dark");
  await until(background).not.toBe(light);
  await theme.selectOption("system");
  await until(() => html.getAttribute("data-theme")).toBe("system");
  await until(background).toBe(light);
  await page.emulateMedia({ colorScheme: "dark" });
  await until(background).not.toBe(light);
  await theme.selectOption("light");
  await until(background).toBe(light);

  const language = page.getByRole("combobox", named("Language"));
  await language.selectOption("ja");
  await page.getByRole("heading", { level: 1, ...named("サーバー") }).waitFor();
  await until(() => html.getAttribute("lang")).toBe("ja");
  await page.reload();
  await page.getByRole("heading", { level: 1, ...named("サーバー") }).waitFor();
  await until(() => html.getAttribute("data-theme")).toBe("light");
  await page.getByRole("combobox", named("言語")).selectOption("en");
  await page.getByRole("heading", { level: 1, ...named("Servers") }).waitFor();
});

test("an address that leads nowhere says so", async ({ open }) => {
  const page = await open("/servers/nobody/tools");
  await page.getByRole("heading", { level: 1, name: /There is no server “nobody”/ }).waitFor();
  await page.getByRole("link", named("Back to servers")).click();
  await page.getByRole("heading", { level: 1, ...named("Servers") }).waitFor();
});

test("a newcomer has a working server within a few clicks", async ({ daemon, open }) => {
  const page = await open("/");
  await page.getByText("No servers yet").waitFor();
  await page.getByRole("button", { name: /^everything/ }).click();
  const dialog = page.getByRole("dialog", named("Add server"));
  await until(() => dialog.getByRole("textbox", named("Command")).inputValue()).toBe("npx");
  await dialog.getByRole("button", named("Save")).click();
  await showsStatus(page, "everything", "Connected");
  expect((await daemon.servers()).map((server) => server.name)).toEqual(["everything"]);
});

test("a row shows what runs, how it is, its tools and how fast it answers", async ({ daemon, open }) => {
  // covers: MGR-27, MGR-59
  await daemon.wayward("steady", ["--page", "10"], { description: "always there" });
  const page = await open("/");
  await page.getByRole("table", named("Servers")).waitFor();
  await showsStatus(page, "steady", "Connected");
  await until(() => row(page, "steady").locator("code").textContent()).toBe(`${WAYWARD} --page 10`);
  await row(page, "steady")
    .getByRole("link", { name: /^\d+ tools$/ })
    .waitFor();
  for (let n = 0; n < 3; n++) await daemon.call("steady", "echo", { n });
  await row(page, "steady")
    .getByRole("img", { name: /^Latency of steady: median \d+(\.\d+)? ms, p95 \d+(\.\d+)? ms/ })
    .waitFor();
});

test("an argument with a space is shown as one", async ({ daemon, open }) => {
  // covers: MGR-59
  await daemon.register({
    name: "spaced",
    command: WAYWARD,
    args: ["--pid-file", `${daemon.home}/a file`],
    enabled: false,
  });
  const page = await open("/");
  await until(() => row(page, "spaced").locator("code").textContent()).toBe(
    `${WAYWARD} --pid-file '${daemon.home}/a file'`,
  );
});

test("servers are found by search, filtered by status and sorted, and the address keeps it", async ({
  daemon,
  open,
}) => {
  await daemon.wayward("alpha", [], { description: "reads mail" });
  await daemon.wayward("beta", [], { enabled: false });
  await daemon.wayward("gamma", ["--exit-at-start", "1"]);
  const page = await open("/");
  const names = () => page.getByRole("rowheader").allTextContents();
  await until(names).toEqual(["alpha", "beta", "gamma"]);
  const chips = page.getByRole("group", named("Filter by status"));
  for (const [chip, found] of [
    [/^Connected ?1$/, ["alpha"]],
    [/^Stopped ?1$/, ["beta"]],
    [/^Error ?1$/, ["gamma"]],
    [/^All ?3$/, ["alpha", "beta", "gamma"]],
  ] as const) {
    await chips.getByRole("button", { name: chip }).click();
    await until(names).toEqual(found);
  }
  const search = page.getByRole("searchbox", named("Search servers"));
  for (const [text, found] of [
    ["ALPHA", ["alpha"]],
    ["mail", ["alpha"]],
    ["exit-at-start", ["gamma"]],
    ["wayward", ["alpha", "beta", "gamma"]],
  ] as const) {
    await search.fill(text);
    await until(names).toEqual(found);
  }
  // The chips count what the search leaves.
  await search.fill("mail");
  for (const chip of [/^All ?1$/, /^Connected ?1$/, /^Stopped ?0$/, /^Error ?0$/])
    await chips.getByRole("button", { name: chip }).waitFor();
  await search.fill("exit-at");
  await until(() => new URL(page.url()).searchParams.get("q")).toBe("exit-at");
  await page.reload();
  await until(names).toEqual(["gamma"]);
  await until(() => search.inputValue()).toBe("exit-at");
  await search.fill("nothing like it");
  await page.getByText("No match", { exact: true }).waitFor();
  await page.getByRole("button", named("Clear")).click();
  await until(names).toEqual(["alpha", "beta", "gamma"]);
  await page.getByRole("columnheader", { name: "Name" }).getByRole("button").click();
  await until(names).toEqual(["gamma", "beta", "alpha"]);
  await until(() => page.getByRole("columnheader", { name: "Name" }).getAttribute("aria-sort")).toBe("descending");
});

test("the switch is busy, with a sign of it, while a server starts and stops", async ({ daemon, open }) => {
  // covers: MGR-20, MGR-24
  const gate = `${daemon.home}/gate`;
  await daemon.wayward("slow", ["--wait-for-file", gate, "--ignore-sigterm", "--ignore-stdin-eof"], { enabled: false });
  const page = await open("/");
  await showsStatus(page, "slow", "Stopped");
  await toggle(page, "slow").click();
  await showsStatus(page, "slow", "Starting…");
  await page.getByRole("progressbar", named("Starting slow")).waitFor();
  await until(() => toggle(page, "slow").getAttribute("aria-busy")).toBe("true");
  await isOn(page, "slow", true);
  writeFileSync(gate, "");
  await showsStatus(page, "slow", "Connected");
  await until(() => toggle(page, "slow").getAttribute("aria-busy")).toBe("false");

  // It ignores the polite ways to stop, so that stopping takes a moment and ends by force.
  await toggle(page, "slow").click();
  await showsStatus(page, "slow", "Stopping…");
  await page.getByRole("progressbar", named("Stopping slow")).waitFor();
  await showsStatus(page, "slow", "Stopped");
  await isOn(page, "slow", false);
});

test("a start can be cancelled by its switch", async ({ daemon, open }) => {
  await daemon.wayward("hanging", ["--hang-at-start"], { enabled: false });
  const page = await open("/");
  await showsStatus(page, "hanging", "Stopped");
  await toggle(page, "hanging").click();
  await showsStatus(page, "hanging", "Starting…");
  await toggle(page, "hanging").click();
  await showsStatus(page, "hanging", "Stopped");
  await isOn(page, "hanging", false);
});

test("Retry starts a failed server again", async ({ daemon, open }) => {
  const file = `${daemon.home}/needed`;
  await daemon.wayward("needy", ["--require-file", file]);
  const page = await open("/");
  await showsStatus(page, "needy", "Error");
  await page.getByRole("button", named("Show error for needy")).click();
  const details = page.getByRole("region", named("Error details for needy"));
  await details.getByText("wayward: cannot start, exiting with 3").waitFor();
  writeFileSync(file, "");
  await details.getByRole("button", named("Retry")).click();
  await showsStatus(page, "needy", "Connected");
  await details.waitFor({ state: "detached" });
});

test("deleting asks by name, can be called off, and gives the focus back", async ({ daemon, open }) => {
  await daemon.wayward("keeper");
  await daemon.wayward("goner");
  const page = await open("/");
  await showsStatus(page, "goner", "Connected");
  const button = page.getByRole("button", named("Delete goner"));
  await button.click();
  const question = page.getByRole("alertdialog", named("Delete goner?"));
  await question.getByRole("button", named("Cancel")).click();
  await question.waitFor({ state: "detached" });
  await until(() => button.evaluate((element) => element === document.activeElement)).toBe(true);
  await button.click();
  await page.keyboard.press("Escape");
  await question.waitFor({ state: "detached" });
  expect(await daemon.servers()).toHaveLength(2);

  await button.click();
  await question.getByRole("button", named("Delete")).click();
  await row(page, "goner").waitFor({ state: "detached" });
  await showsStatus(page, "keeper", "Connected");
  expect((await daemon.servers()).map((server) => server.name)).toEqual(["keeper"]);
});
