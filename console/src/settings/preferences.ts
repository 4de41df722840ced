// What a person chose for this browser. Kept in local storage; public/first-paint.js reads the
// same keys before the first paint.
import { createStore, useStore } from "../api/store";
import { type Language, switchLanguage } from "../i18n";

export type Theme = "system" | "light" | "dark";

function read(key: string): string | null {
  try {
    return localStorage.getItem(`cofer.${key}`);
  } catch {
    return null;
  }
}

function write(key: string, value: string): void {
  try {
    localStorage.setItem(`cofer.${key}`, value);
  } catch {
    // Storage is switched off: the choice lives as long as the page.
  }
}

const storedTheme = read("theme");
export const theme = createStore<Theme>(storedTheme === "light" || storedTheme === "dark" ? storedTheme : "system");
export const language = createStore<Language>(document.documentElement.lang === "ja" ? "ja" : "en");
export const shortcuts = createStore<boolean>(read("shortcuts") !== "off");

export const useTheme = () => useStore(theme);
export const useLanguage = () => useStore(language);
export const useShortcutsOn = () => useStore(shortcuts);

const darkScheme = window.matchMedia("(prefers-color-scheme: dark)");

function applyTheme(): void {
  const choice = theme.get();
  const root = document.documentElement;
  root.dataset.theme = choice;
  root.classList.toggle("dark", choice === "dark" || (choice === "system" && darkScheme.matches));
}

darkScheme.addEventListener("change", applyTheme);
applyTheme();

export function chooseTheme(choice: Theme): void {
  write("theme", choice);
  theme.set(choice);
  applyTheme();
}

export function chooseLanguage(choice: Language): void {
  write("language", choice);
  language.set(choice);
  void switchLanguage(choice);
}

export function chooseShortcuts(on: boolean): void {
  write("shortcuts", on ? "on" : "off");
  shortcuts.set(on);
}
