// axe on every page and dialog, in both themes and both languages: WCAG 2.2 A and AA.
import type { Page } from "playwright-core";
import { findings } from "./support/axe";
import type { Daemon } from "./support/daemon";
import { EVERYTHING } from "./support/places";
import { named, showsStatus } from "./support/screen";
import { expect, test } from "./support/test";

async function populate(daemon: Daemon): Promise<void> {
  await daemon.register({ name: "every", command: EVERYTHING, args: [], description: "shows everything" });
  await daemon.wayward("stopped", [], { enabled: false });
  await daemon.wayward("failed", ["--exit-at-start", "2"]);
  for (let n = 0; n < 5; n++) await daemon.call("every", "echo", { message: String(n) });
  await daemon.call("every", "no-such-tool", {});
}

/** Each page: its address, and what is done on it before axe looks. */
const PAGES: Record<string, { path: string; sign: string; act?: (page: Page) => Promise<unknown> }> = {
  servers: {
    path: "/",
    sign: "failed",
    act: (page) =>
      page
        .getByRole("button", { name: /failed/ })
        .first()
        .click(),
  },
  "no match": { path: "/?q=zzz", sign: "Cofer" },
  overview: { path: "/servers/every/overview", sign: "shows everything" },
  "failed overview": { path: "/servers/failed/overview", sign: "exiting with 2" },
  tools: {
    path: "/servers/every/tools",
    sign: "get-sum",
    act: (page) => page.locator("[aria-expanded=false]").first().click(),
  },
  resources: { path: "/servers/every/resources", sign: "architecture.md" },
  prompts: { path: "/servers/every/prompts", sign: "args-prompt" },
  logs: { path: "/servers/every/logs", sign: "starting" },
  "server settings": { path: "/servers/every/settings", sign: "every" },
  "not connected": { path: "/servers/stopped/tools", sign: "stopped" },
  activity: {
    path: "/activity",
    sign: "echo",
    act: (page) => page.locator("[role=table] [aria-expanded=false]").first().click(),
  },
  environments: { path: "/environments", sign: "cofer init" },
  settings: { path: "/settings", sign: "日本語" },
  "no such server": { path: "/servers/nobody/overview", sign: "nobody" },
};

test("axe finds a mistake where there is one", async ({ open }) => {
  const page = await open("/");
  await page.getByText("No servers yet").waitFor();
  expect(await findings(page)).toEqual([]);
  await page.evaluate(() => {
    const button = document.createElement("button");
    button.style.color = "#ccc";
    button.style.background = "#fff";
    document
      .querySelector("main")!
      .append(button, Object.assign(document.createElement("p"), { textContent: "pale", className: "pale" }));
    document.querySelector<HTMLElement>(".pale")!.style.cssText = "color: #ccc; background: #fff";
  });
  const found = (await findings(page)).join("\n");
  expect(found).toContain("button-name");
  expect(found).toContain("color-contrast");
});

for (const theme of ["light", "dark"] as const) {
  for (const lang of ["en", "ja"] as const) {
    test(`axe finds nothing on any page: ${theme}, ${lang}`, async ({ daemon, open }) => {
      await populate(daemon);
      const page = await open("/", { theme, lang });
      const found: Record<string, string[]> = {};
      for (const [name, { path, sign, act }] of Object.entries(PAGES)) {
        await page.goto(path);
        await page.getByText(sign).filter({ visible: true }).first().waitFor();
        await act?.(page);
        const problems = await findings(page);
        if (problems.length > 0) found[name] = problems;
      }
      expect(found).toEqual({});
    });
  }

  test(`axe finds nothing in any dialog, ${theme}`, async ({ daemon, open }) => {
    await populate(daemon);
    const found: Record<string, string[]> = {};
    const look = async (page: Page, name: string) => {
      const problems = await findings(page);
      if (problems.length > 0) found[name] = problems;
    };
    const page = await open("/", { theme });
    await showsStatus(page, "failed", "Error");
    await page.getByRole("button", named("Add server")).click();
    const form = page.getByRole("dialog", named("Add server"));
    await form.getByRole("button", named("Save")).click();
    await form.getByText("Name is required").waitFor();
    await form.getByText("More options").click();
    await form.getByRole("button", named("Add variable")).click();
    await form.getByRole("checkbox", named("Include resources as tools")).check();
    await look(page, "form");
    await form.getByText("Container image", { exact: true }).click();
    await look(page, "form of a container");
    await form.getByRole("tab", named("Paste JSON")).click();
    await form
      .getByRole("textbox", named("mcpServers JSON"))
      .fill('{"mcpServers": {"failed": {"command": "x"}, "new": {"command": "sh"}}}');
    await form.getByRole("button", named("Preview import")).click();
    await form.getByRole("table", named("Servers to import")).waitFor();
    await look(page, "import");
    await form.getByRole("tab", named("Templates")).click();
    await form.getByRole("button", { name: /^sqlite/ }).waitFor();
    await look(page, "templates");
    await page.keyboard.press("Escape");
    const question = page.getByRole("alertdialog", named("Discard changes?"));
    await question.waitFor();
    await look(page, "discard");
    await question.getByRole("button", named("Discard")).click();
    await question.waitFor({ state: "detached" });
    await page.getByRole("button", named("Delete failed")).click();
    await page.getByRole("alertdialog").waitFor();
    await look(page, "delete");
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.getByRole("dialog", named("Keyboard shortcuts")).waitFor();
    await look(page, "help");
    await page.goto("/servers/every/tools");
    await page.getByRole("button", named("Run echo")).click();
    const runner = page.getByRole("dialog", named("Run echo"));
    await runner.getByRole("button", named("Run")).click();
    await runner.getByRole("alert").waitFor();
    await look(page, "runner with a mistake");
    await runner.getByRole("textbox", named("message")).fill("hello");
    await runner.getByRole("button", named("Run")).click();
    await runner.getByRole("region", named("Result")).waitFor();
    await look(page, "runner with a result");
    await page.goto("/servers/every/resources");
    await page.getByRole("button", named("Preview architecture.md")).click();
    await page
      .getByRole("dialog")
      .getByText(/Architecture/)
      .first()
      .waitFor();
    await look(page, "preview");
    const stranger = await open("/", { theme, stranger: true });
    await stranger.getByRole("heading", { level: 1, ...named("Open the console") }).waitFor();
    await look(stranger, "sign in");
    const phone = await open("/", { theme, viewport: { width: 375, height: 760 }, touch: true });
    await showsStatus(phone, "failed", "Error");
    await look(phone, "servers on a phone");
    expect(found).toEqual({});
  });
}
