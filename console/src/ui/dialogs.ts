// Which dialog is open. Dialogs are opened from many places and are loaded when first needed.
import { createStore } from "../api/store";
import type { ServerView } from "../api/schema";

export type OpenDialog =
  | { kind: "add"; tab?: "form" | "paste" | "templates"; template?: string }
  | { kind: "edit"; server: ServerView }
  | { kind: "delete"; server: ServerView }
  | { kind: "help" };

export const dialog = createStore<OpenDialog | null>(null);

let opener: Element | null = null;

export function openDialog(next: OpenDialog): void {
  if (!dialog.get()) opener = document.activeElement;
  dialog.set(next);
}

/** Closes it and gives the focus back to where it came from. */
export function closeDialog(): void {
  dialog.set(null);
  const back = opener;
  setTimeout(() => {
    const lost = document.activeElement === document.body || document.activeElement === null;
    if (lost && back instanceof HTMLElement && back.isConnected) back.focus();
  });
}
