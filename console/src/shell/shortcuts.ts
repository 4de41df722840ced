// Single-key shortcuts. Off inside fields and dialogs, and off altogether for who wants that.
import { useEffect } from "react";
import { navigate } from "wouter/use-browser-location";
import { shortcuts } from "../settings/preferences";
import { dialog, openDialog } from "../ui/dialogs";
import { isComposing } from "../ui/ime";

const PLACES: Record<string, string> = {
  s: "/",
  c: "/chat",
  a: "/activity",
  e: "/environments",
  t: "/settings",
};
/** How long `g` waits for its second key. */
const CHORD_MS = 1200;

export function useShortcuts(): void {
  useEffect(() => {
    let chordUntil = 0;
    const pressed = (event: KeyboardEvent) => {
      if (!isForUs(event)) return;
      const place = event.timeStamp < chordUntil ? PLACES[event.key] : undefined;
      chordUntil = event.key === "g" ? event.timeStamp + CHORD_MS : 0;
      if (place) navigate(place);
      else if (!act(event.key)) return;
      event.preventDefault();
    };
    document.addEventListener("keydown", pressed);
    return () => document.removeEventListener("keydown", pressed);
  }, []);
}

function isForUs(event: KeyboardEvent): boolean {
  if (!shortcuts.get() || event.ctrlKey || event.metaKey || event.altKey || isComposing(event)) return false;
  if (dialog.get() || document.querySelector("[role=dialog],[role=alertdialog]")) return false;
  const target = event.target as HTMLElement;
  return !target.closest("input,textarea,select,[contenteditable=true],[role=textbox]");
}

function act(key: string): boolean {
  switch (key) {
    case "?":
      openDialog({ kind: "help" });
      return true;
    case "n":
      openDialog({ kind: "add" });
      return true;
    case "/": {
      const search = document.querySelector<HTMLInputElement>("[data-search]");
      search?.focus();
      return search !== null;
    }
    case "j":
    case "k":
      return moveRow(key === "j" ? 1 : -1);
    case "x": {
      const toggle = currentRow()?.querySelector<HTMLElement>("[role=switch]");
      toggle?.click();
      return toggle !== undefined && toggle !== null;
    }
    default:
      return false;
  }
}

const currentRow = () => document.activeElement?.closest<HTMLElement>("[data-row]") ?? null;

/** Rows are moved through by the focus of their link, so that Enter opens them. */
function moveRow(step: number): boolean {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")];
  const row = currentRow();
  const at = row ? rows.indexOf(row) + step : step > 0 ? 0 : rows.length - 1;
  const link = rows[Math.max(0, Math.min(rows.length - 1, at))]?.querySelector<HTMLElement>("a");
  link?.focus();
  return Boolean(link);
}
