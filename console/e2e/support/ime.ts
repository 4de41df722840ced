// Japanese input as an input method does it: a composition that grows, is converted, and is
// committed by Enter, which must not do anything else.
import type { Locator, Page } from "playwright-core";

/** Types `text` into the focused field through a composition, and commits it with Enter. */
export async function compose(page: Page, text: string): Promise<void> {
  const session = await page.context().newCDPSession(page);
  const letters = [...text];
  for (let count = 1; count <= letters.length; count++) {
    const part = letters.slice(0, count).join("");
    await session.send("Input.imeSetComposition", {
      text: part,
      selectionStart: part.length,
      selectionEnd: part.length,
    });
  }
  // The key that ends the composition reaches the page as key code 229, while it still composes.
  const enter = { key: "Enter", code: "Enter", windowsVirtualKeyCode: 229, nativeVirtualKeyCode: 229 };
  await session.send("Input.dispatchKeyEvent", { type: "rawKeyDown", ...enter });
  await session.send("Input.insertText", { text });
  await session.send("Input.dispatchKeyEvent", {
    type: "keyUp",
    ...enter,
    windowsVirtualKeyCode: 13,
    nativeVirtualKeyCode: 13,
  });
  await session.detach();
  // Until the page's next task an Escape still belongs to the composition, as Safari sends it.
  await page.evaluate(() => new Promise((done) => setTimeout(done)));
}

/** Empties a field and composes into it; gives back what stands there then. */
export async function composeInto(page: Page, field: Locator, text: string): Promise<string> {
  await field.fill("");
  await field.focus();
  await compose(page, text);
  return field.inputValue();
}

const FIELDS = "input:not([type=checkbox], [type=radio], [type=password], [readonly]), textarea";

/** Composes into every text field that is to be seen. Gives back their names; a field that did not
 *  take the text says so in its name. */
export async function composeIntoAll(page: Page, scope: Locator): Promise<string[]> {
  const names: string[] = [];
  await scope.locator(FIELDS).filter({ visible: true }).first().waitFor();
  for (const field of await scope.locator(FIELDS).all()) {
    if (!(await field.isVisible())) continue;
    const name = await field.evaluate(
      (element: HTMLInputElement) => element.ariaLabel ?? element.labels?.[0]?.textContent ?? "a field without a name",
    );
    const text = await composeInto(page, field, "日本語入力");
    names.push(text === "日本語入力" ? name : `${name} (took ${JSON.stringify(text)})`);
  }
  return names;
}
