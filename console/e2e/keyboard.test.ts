// Everything without a mouse.
import type { Page } from "playwright-core";
import { WAYWARD } from "./support/places";
import { isOn, named, showsStatus } from "./support/screen";
import { expect, test, until } from "./support/test";

const focused = (page: Page) =>
  page.evaluate(() => {
    const element = document.activeElement;
    return (
      element?.getAttribute("aria-label") ??
      (element as HTMLInputElement | null)?.labels?.[0]?.textContent ??
      element?.textContent ??
      ""
    );
  });

/** Presses Tab until the focus is on `name`; a name that never comes is a place the keyboard cannot reach. */
async function tabTo(page: Page, name: RegExp, key = "Tab"): Promise<void> {
  const passed: string[] = [];
  for (let steps = 0; steps < 80; steps++) {
    const here = await focused(page);
    if (name.test(here)) return;
    passed.push(here.slice(0, 40));
    await page.keyboard.press(key);
  }
  throw new Error(`${key} never came to ${name}: ${passed.join(" | ")}`);
}

test("a server is added, switched, opened, run and deleted with the keyboard alone", async ({ daemon, open }) => {
  const page = await open("/");
  await page.getByText("No servers yet").waitFor();
  await page.keyboard.press("n");
  const form = page.getByRole("dialog", named("Add server"));
  await form.waitFor();
  await tabTo(page, /^Name/);
  await page.keyboard.type("by keys");
  await tabTo(page, /^Command\*?$/);
  await page.keyboard.type(WAYWARD);
  await tabTo(page, /^Arguments/);
  await page.keyboard.type("--page");
  await page.keyboard.press("Enter");
  await page.keyboard.type("11");
  await page.keyboard.press("Control+Enter");
  await form.waitFor({ state: "detached" });
  await showsStatus(page, "by keys", "Connected");
  expect((await daemon.server("by keys")).args).toEqual(["--page", "11"]);

  await page.keyboard.press("j");
  await until(() => focused(page)).toBe("by keys");
  await page.keyboard.press("x");
  await showsStatus(page, "by keys", "Stopped");
  await tabTo(page, /^Enable by keys$/);
  await page.keyboard.press("Space");
  await isOn(page, "by keys", true);
  await showsStatus(page, "by keys", "Connected");
  await tabTo(page, /^by keys$/, "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, ...named("by keys") }).waitFor();

  await tabTo(page, /^Overview/);
  await page.keyboard.press("ArrowRight");
  await until(() => focused(page)).toMatch(/^Tools/);
  await page.keyboard.press("Enter");
  await page.getByRole("list", named("Tools")).waitFor();
  await tabTo(page, /^Run pid$/);
  await page.keyboard.press("Enter");
  const runner = page.getByRole("dialog", named("Run pid"));
  await runner.waitFor();
  await tabTo(page, /^Run$/);
  await page.keyboard.press("Enter");
  await runner.getByRole("region", named("Result")).waitFor();
  await page.keyboard.press("Escape");
  await runner.waitFor({ state: "detached" });
  await until(() => focused(page)).toBe("Run pid");

  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.getByRole("heading", { level: 1, ...named("Servers") }).waitFor();
  await tabTo(page, /^Delete by keys$/);
  await page.keyboard.press("Enter");
  const question = page.getByRole("alertdialog", named("Delete by keys?"));
  await question.waitFor();
  // A stray Enter must not delete: the focus is not on Delete.
  expect(await focused(page)).not.toBe("Delete");
  await tabTo(page, /^Delete$/);
  await page.keyboard.press("Enter");
  await page.getByText("No servers yet").waitFor();
});

test("single keys go places, and stay letters in a field", async ({ daemon, open }) => {
  await daemon.wayward("one");
  await daemon.wayward("two");
  const page = await open("/");
  await showsStatus(page, "two", "Connected");
  await page.keyboard.press("/");
  await until(() => focused(page)).toBe("Search servers");
  await page.keyboard.type("n?xgs/jk");
  await until(() => page.getByRole("searchbox", named("Search servers")).inputValue()).toBe("n?xgs/jk");
  await until(() => page.getByRole("dialog").count()).toBe(0);
  await page.getByRole("searchbox", named("Search servers")).fill("");
  await page.getByRole("heading", { level: 1 }).focus();
  await page.keyboard.press("j");
  await until(() => focused(page)).toBe("one");
  await page.keyboard.press("j");
  await until(() => focused(page)).toBe("two");
  await page.keyboard.press("k");
  await until(() => focused(page)).toBe("one");
  await page.keyboard.press("?");
  const help = page.getByRole("dialog", named("Keyboard shortcuts"));
  await help.waitFor();
  await page.keyboard.press("Escape");
  await help.waitFor({ state: "detached" });
  await page.keyboard.press("g");
  await page.keyboard.press("a");
  await page.getByRole("heading", { level: 1, ...named("Activity") }).waitFor();

  // They can be switched off (WCAG 2.1.4).
  await page.goto("/settings");
  await page.getByRole("checkbox", named("Single-key shortcuts")).uncheck();
  await page.getByRole("heading", { level: 1 }).focus();
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await page.keyboard.press("?");
  await page.getByRole("heading", { level: 1, ...named("Settings") }).waitFor();
  await until(() => page.getByRole("dialog").count()).toBe(0);
});

test("the first Tab skips to the content, and a dialog keeps the focus", async ({ daemon, open }) => {
  await daemon.wayward("some");
  const page = await open("/");
  await showsStatus(page, "some", "Connected");
  await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
  await page.keyboard.press("Tab");
  await until(() => focused(page)).toBe("Skip to content");
  await page.keyboard.press("Enter");
  await until(() => page.evaluate(() => document.activeElement?.id)).toBe("content");
  await page.getByRole("button", named("Edit some")).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", named("Edit some"));
  await dialog.waitFor();
  const isInside = () =>
    page.evaluate(
      () =>
        document.activeElement?.closest("[role=dialog]") !== null ||
        document.activeElement?.hasAttribute("data-base-ui-focus-guard") === true,
    );
  // The focus goes in a moment after the dialog is there, and back to its other end a moment after it left.
  await until(isInside).toBe(true);
  for (let steps = 0; steps < 40; steps++) {
    await page.keyboard.press("Tab");
    await until(isInside).toBe(true);
  }
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await until(() => focused(page)).toBe("Edit some");
});
