// The chat as a person uses it: by role and name, as CONSOLE.md fixes them.
import type { Locator, Page } from "playwright-core";
import { Model } from "./model";
import { named } from "./screen";
import { test as base } from "./test";

/** With a model that the test tells what to say, and that the daemon knows. */
export const test = base.extend<{ model: Model }>({
  model: async ({ daemon }, use) => {
    const model = await Model.start();
    await model.setUp(daemon);
    await use(model);
    await model.stop();
  },
});

export const log = (page: Page) => page.getByRole("log", named("Conversation"));
export const message = (page: Page) => page.getByRole("textbox", named("Message"));
export const card = (page: Page, n: number, tool: string) =>
  log(page).getByRole("group", named(`Tool call ${n}: ${tool}`));

export async function ask(page: Page, text: string): Promise<void> {
  await message(page).fill(text);
  await page.getByRole("button", named("Send")).click();
}

/** The turn is over when the next message can be sent. */
export async function finished(page: Page): Promise<void> {
  await page.getByRole("button", named("Send")).waitFor();
}

/** Opens a part of a card. */
export async function unfold(where: Locator, name: string): Promise<Locator> {
  await where.getByRole("button", named(name)).click();
  const region = where.getByRole("region", named(name));
  await region.waitFor();
  return region;
}
