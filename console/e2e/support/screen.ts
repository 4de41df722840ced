// How a person finds things in the console: by role and name, as CONSOLE.md fixes them.
import type { Locator, Page } from "playwright-core";
import { until } from "./test";

export const named = (name: string) => ({ name, exact: true });

/** The row of a server in the list. */
export function row(page: Page, name: string): Locator {
  return page.getByRole("row").filter({ has: page.getByRole("rowheader", named(name)) });
}

/** Waits until the list says `word` about a server. */
export async function showsStatus(page: Page, name: string, word: string): Promise<void> {
  await row(page, name).getByRole("cell", named(word)).waitFor();
}

export function toggle(page: Page, name: string): Locator {
  return page.getByRole("switch", named(`Enable ${name}`));
}

export async function isOn(page: Page, name: string, on: boolean): Promise<void> {
  await until(() => toggle(page, name).getAttribute("aria-checked")).toBe(String(on));
}

/** The text that a field with a wrong value points to. */
export async function complaint(field: Locator): Promise<string | null> {
  return field.evaluate((element) => {
    if (element.getAttribute("aria-invalid") !== "true") return null;
    const ids = element.getAttribute("aria-errormessage") ?? element.getAttribute("aria-describedby") ?? "";
    return ids
      .split(/\s+/)
      .map((id) => document.getElementById(id)?.textContent ?? "")
      .join(" ");
  });
}

export type ServerDraft = { name?: string; command?: string; args?: string; description?: string };

/** Opens the dialog for a new server and fills it in. */
export async function fillNewServer(page: Page, draft: ServerDraft): Promise<Locator> {
  await page.getByRole("button", named("Add server")).click();
  const dialog = page.getByRole("dialog", named("Add server"));
  await fillForm(dialog, draft);
  return dialog;
}

export async function fillForm(form: Locator, draft: ServerDraft): Promise<void> {
  const fields = {
    name: "Name",
    command: "Command",
    args: "Arguments (one per line)",
    description: "Description",
  } as const;
  for (const [key, label] of Object.entries(fields)) {
    const text = draft[key as keyof ServerDraft];
    if (text !== undefined) await form.getByRole("textbox", named(label)).fill(text);
  }
}

/** Opens a section of a server's page. */
export async function openTab(page: Page, title: string): Promise<void> {
  await page.getByRole("tab", { name: new RegExp(`^${title}`) }).click();
}

/** Nothing may stick out at the side. */
export async function fits(page: Page): Promise<void> {
  const size = () => page.evaluate(() => ({ page: document.documentElement.scrollWidth, window: window.innerWidth }));
  await until(async () => {
    const { page: width, window } = await size();
    return width <= window;
  }).toBe(true);
}
