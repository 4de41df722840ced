// Settings of this browser, and what there is to know about the daemon.
import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { connection } from "../api/connection";
import { healthQuery } from "../api/queries";
import { storeToken } from "../api/token";
import { Flag } from "../servers/form/flag-fields";
import { Field } from "../ui/field";
import { CopyButton } from "../ui/copy-button";
import { PageHead } from "../ui/page";
import { ProviderSettings } from "./providers";
import {
  type Theme,
  chooseLanguage,
  chooseShortcuts,
  chooseTheme,
  useLanguage,
  useShortcutsOn,
  useTheme,
} from "./preferences";

export default function SettingsPage() {
  const { t } = useTranslation();
  return (
    <>
      <PageHead title={t("settings.title")} />
      <div className="max-w-2xl space-y-4">
        <Appearance />
        <Section title={t("models.title")}>
          <ProviderSettings />
        </Section>
        <Section title={t("settings.keyboard")}>
          <Flag
            label={t("settings.shortcuts")}
            hint={t("settings.shortcutsHint")}
            checked={useShortcutsOn()}
            onChange={chooseShortcuts}
          />
        </Section>
        <Access />
        <Daemon />
      </div>
    </>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="card p-4">
      <h2 className="mb-3 font-semibold">{title}</h2>
      <div className="space-y-3">{children}</div>
    </section>
  );
}

/** The same two choices as in the header, with room for words. */
function Appearance() {
  const { t } = useTranslation();
  const language = useLanguage();
  const theme = useTheme();
  const languages = { en: "English", ja: "日本語" };
  return (
    <Section title={t("settings.appearance")}>
      <RadioRow
        legend={t("app.language")}
        name="language"
        value={language}
        options={languages}
        onChange={(value) => chooseLanguage(value === "ja" ? "ja" : "en")}
      />
      <RadioRow
        legend={t("app.theme")}
        name="theme"
        value={theme}
        options={{ system: t("theme.system"), light: t("theme.light"), dark: t("theme.dark") }}
        onChange={(value) => chooseTheme(value as Theme)}
      />
    </Section>
  );
}

type RadioRowProps = {
  legend: string;
  name: string;
  value: string;
  options: Record<string, string>;
  onChange: (value: string) => void;
};

function RadioRow({ legend, name, value, options, onChange }: RadioRowProps) {
  return (
    <fieldset>
      <legend className="mb-1 font-medium">{legend}</legend>
      <div className="flex flex-wrap gap-1.5">
        {Object.entries(options).map(([key, word]) => (
          <label key={key} className="chip cursor-pointer">
            <input
              type="radio"
              className="sr-only"
              name={name}
              checked={value === key}
              onChange={() => onChange(key)}
            />
            {word}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

function Access() {
  const { t } = useTranslation();
  const forget = () => {
    storeToken(null);
    connection.set("unauthorized");
  };
  return (
    <Section title={t("settings.access")}>
      <Field label={t("settings.address")}>
        {(field) => (
          <span className="flex gap-1.5">
            <input {...field} className="input font-mono text-sm" readOnly value={window.location.origin} />
            <CopyButton text={window.location.origin} iconOnly className="self-center" />
          </span>
        )}
      </Field>
      <p>{t("settings.tokenState")}</p>
      <p className="text-soft">{t("settings.tokenHint")}</p>
      <button type="button" className="btn" onClick={forget}>
        {t("settings.forget")}
      </button>
    </Section>
  );
}

function Daemon() {
  const { t } = useTranslation();
  const health = useQuery(healthQuery).data;
  return (
    <Section title={t("settings.daemon")}>
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-1.5">
        <dt className="text-soft">{t("settings.version")}</dt>
        <dd>{health?.version ?? "–"}</dd>
        <dt className="text-soft">{t("settings.state")}</dt>
        <dd>{health ? t(health.status === "ok" ? "settings.stateOk" : "settings.stateDegraded") : "–"}</dd>
      </dl>
      <p className="text-soft">{t("settings.data")}</p>
    </Section>
  );
}
