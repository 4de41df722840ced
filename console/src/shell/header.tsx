// The bar at the top: whether the page is live, the health of the servers, language and theme.
import { Languages, SunMoon } from "lucide-react";
import { useTranslation } from "react-i18next";
import { useConnection } from "../api/connection";
import { HealthStatus } from "./health";
import { type Theme, chooseLanguage, chooseTheme, useLanguage, useTheme } from "../settings/preferences";

export function Header() {
  return (
    <header className="sticky top-0 z-20 flex h-12 items-center justify-between gap-3 border-b border-line bg-page/90 px-4 backdrop-blur md:px-8">
      <div className="flex min-w-0 items-center gap-4">
        <ConnectionState />
        <HealthStatus />
      </div>
      <div className="flex flex-none items-center gap-2">
        <LanguageSelect />
        <ThemeSelect />
      </div>
    </header>
  );
}

function ConnectionState() {
  const { t } = useTranslation();
  const state = useConnection();
  const look = state === "live" ? "bg-ok" : state === "connecting" ? "bg-soft" : "bg-warn animate-pulse";
  const word = state === "live" ? t("app.live") : state === "connecting" ? t("app.connecting") : t("app.reconnecting");
  return (
    <span className="flex min-w-0 items-center gap-2 text-sm text-soft">
      <span aria-hidden className={`size-2 flex-none rounded-full ${look}`} />
      <span className="truncate">{word}</span>
    </span>
  );
}

export function LanguageSelect() {
  const { t } = useTranslation();
  return (
    <span className="flex items-center gap-1.5 text-soft">
      <Languages size={15} aria-hidden />
      <select
        aria-label={t("app.language")}
        className="input input-quiet py-0"
        value={useLanguage()}
        onChange={(event) => chooseLanguage(event.target.value === "ja" ? "ja" : "en")}
      >
        <option value="en" lang="en">
          English
        </option>
        <option value="ja" lang="ja">
          日本語
        </option>
      </select>
    </span>
  );
}

export function ThemeSelect() {
  const { t } = useTranslation();
  return (
    <span className="flex items-center gap-1.5 text-soft">
      <SunMoon size={15} aria-hidden />
      <select
        aria-label={t("app.theme")}
        className="input input-quiet py-0"
        value={useTheme()}
        onChange={(event) => chooseTheme(event.target.value as Theme)}
      >
        <option value="system">{t("theme.system")}</option>
        <option value="light">{t("theme.light")}</option>
        <option value="dark">{t("theme.dark")}</option>
      </select>
    </span>
  );
}
