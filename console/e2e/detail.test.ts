// A server's own page: its head, its overview, and what it says when there is nothing to show.
import { WAYWARD } from "./support/places";
import { named, openTab, row, showsStatus, toggle } from "./support/screen";
import { expect, test, until } from "./support/test";

test("the page shows what runs, how it is, and what it offers", async ({ daemon, open }) => {
  // covers: MGR-30, MGR-36, MGR-41, MGR-48, MGR-59
  const server = await daemon.wayward("detailed", ["--resources", "12"], {
    description: "a server to look at",
    environment: { MODE: "value-that-is-masked" },
  });
  const page = await open("/");
  await row(page, "detailed").getByRole("link", named("detailed")).click();
  await page.getByRole("heading", { level: 1, ...named("detailed") }).waitFor();
  const main = page.getByRole("main");
  for (const text of ["Connected", String(server.pid), server.protocol_version, "a server to look at"]) {
    await main.getByText(text, { exact: true }).first().waitFor();
  }
  const tabs = page.getByRole("tablist", named("Server sections"));
  for (const title of [/^Overview$/, /^Tools ?\d+$/, /^Resources ?12$/, /^Prompts ?1$/, /^Logs$/, /^Settings$/]) {
    await tabs.getByRole("tab", { name: title }).waitFor();
  }
  await main.getByText(WAYWARD, { exact: true }).waitFor();
  await main.getByText("--resources", { exact: true }).waitFor();
  await main.getByText(/^MODE=/).waitFor();
  expect(await main.textContent()).not.toContain("value-that-is-masked");
  await main.getByText(/about [\d,]+ tokens/).waitFor();
  await daemon.call("detailed", "echo", { hello: 1 });
  await main.getByText("echo", { exact: true }).first().waitFor();
});

test("tabs are addresses: they can be linked to, and the way back works", async ({ daemon, open }) => {
  await daemon.wayward("tabbed");
  const page = await open("/servers/tabbed/prompts");
  const selected = (title: RegExp) =>
    until(() => page.getByRole("tab", { name: title }).getAttribute("aria-selected")).toBe("true");
  await selected(/^Prompts/);
  await openTab(page, "Tools");
  await selected(/^Tools/);
  expect(new URL(page.url()).pathname).toBe("/servers/tabbed/tools");
  await page.goBack();
  await selected(/^Prompts/);
  await page.reload();
  await selected(/^Prompts/);
});

test("the switch, Restart and Delete are here too", async ({ daemon, open }) => {
  const before = await daemon.wayward("acted");
  const page = await open("/servers/acted/logs");
  await page.getByRole("button", named("Restart")).click();
  await until(async () => {
    const server = await daemon.server("acted");
    return server.status === "ready" && server.pid !== before.pid;
  }).toBe(true);
  await toggle(page, "acted").click();
  await page.getByRole("main").getByText("Stopped", { exact: true }).waitFor();
  await toggle(page, "acted").click();
  await page.getByRole("main").getByText("Connected", { exact: true }).waitFor();
  await page.getByRole("button", named("Delete acted")).click();
  await page.getByRole("alertdialog", named("Delete acted?")).getByRole("button", named("Delete")).click();
  await page.getByRole("heading", { level: 1, ...named("Servers") }).waitFor();
  await until(() => daemon.servers()).toEqual([]);
});

test("a server that is off says to switch it on, and fills the page once it is", async ({ daemon, open }) => {
  // covers: MGR-39, MGR-55
  await daemon.wayward("sleeper", ["--resources", "3"], { enabled: false });
  const page = await open("/servers/sleeper/tools");
  for (const tab of ["Tools", "Resources", "Prompts"]) {
    await openTab(page, tab);
    const alert = page.getByRole("alert", named("“sleeper” is not connected"));
    await alert.waitFor();
    await until(() => alert.textContent()).toContain("Enable the server");
  }
  await openTab(page, "Resources");
  await page.getByRole("alert").getByRole("button", named("Enable")).click();
  await page.getByRole("list", named("Resources")).getByText("resource-0002", { exact: true }).waitFor();
  await openTab(page, "Tools");
  await page.getByRole("list", named("Tools")).getByText("echo", { exact: true }).waitFor();
});

test("an error and its stderr are on the page, and it can be tried again there", async ({ daemon, open }) => {
  // covers: MGR-28
  await daemon.wayward("failing", ["--exit-at-start", "4"]);
  const page = await open("/servers/failing/overview");
  const details = page.getByRole("region", named("Error details for failing"));
  await details.getByText("wayward: cannot start, exiting with 4").waitFor();
  await details.getByText("4", { exact: true }).waitFor();
  const requested = page.waitForRequest((request) => request.method() === "POST" && request.url().includes("/enable"));
  await details.getByRole("button", named("Retry")).click();
  await requested;
  await details.waitFor();
});

test("a server that crashes is isolated and comes back", async ({ daemon, open }) => {
  // covers: MGR-60
  await daemon.wayward("crashing");
  await daemon.wayward("calm");
  const page = await open("/");
  const before = (await daemon.server("crashing")).pid;
  await showsStatus(page, "crashing", "Connected");
  await daemon.call("crashing", "crash", { code: 9 });
  await until(async () => {
    const server = await daemon.server("crashing");
    return server.status === "ready" && server.pid !== before;
  }).toBe(true);
  await showsStatus(page, "crashing", "Connected");
  await showsStatus(page, "calm", "Connected");
  await row(page, "crashing").getByRole("link", named("crashing")).click();
  await page.getByRole("main").getByText("Restarts", { exact: true }).waitFor();
});
