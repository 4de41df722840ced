// Sets up the language. English is always there; Japanese comes in a file of its own when wanted.
import i18next from "i18next";
import { initReactI18next } from "react-i18next";
import { en } from "./en";

export type Language = "en" | "ja";

declare module "i18next" {
  interface CustomTypeOptions {
    defaultNS: "translation";
    resources: { translation: typeof en };
  }
}

/** Resolves when texts can be shown in this language. */
export async function startLanguage(language: Language): Promise<void> {
  await i18next.use(initReactI18next).init({
    lng: "en",
    fallbackLng: "en",
    resources: { en: { translation: en } },
    interpolation: { escapeValue: false },
    returnNull: false,
  });
  await switchLanguage(language);
}

/** Changes the language of every text on the page, and the page's own. */
export async function switchLanguage(language: Language): Promise<void> {
  if (language === "ja" && !i18next.hasResourceBundle("ja", "translation")) {
    const { ja } = await import("./ja");
    i18next.addResourceBundle("ja", "translation", ja);
  }
  await i18next.changeLanguage(language);
  document.documentElement.lang = language;
}
