// For a browser without a token: how to get one, and a field for who has it at hand.
import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { API } from "../api/client";
import { storeToken } from "../api/token";
import { CopyButton } from "../ui/copy-button";
import { Field } from "../ui/field";
import { guardComposition } from "../ui/ime";
import { PageTitle } from "../ui/page";
import { LanguageSelect, ThemeSelect } from "./header";

export function SignIn({ onToken }: { onToken: () => void }) {
  const { t } = useTranslation();
  return (
    <main className="mx-auto flex min-h-dvh max-w-md flex-col justify-center gap-4 px-4 py-10">
      <img src="/icon.svg" alt="" width={44} height={44} />
      <PageTitle>{t("signIn.title")}</PageTitle>
      <p className="text-soft">{t("signIn.lead")}</p>
      <div className="card p-4">
        <p>{t("signIn.command")}</p>
        <div className="mt-2 flex items-center justify-between gap-2 rounded-lg bg-sunken px-3 py-1.5">
          <code>cofer console</code>
          <CopyButton text="cofer console" iconOnly />
        </div>
        <hr className="my-4 border-line" />
        <p className="mb-3">{t("signIn.or")}</p>
        <TokenForm onToken={onToken} />
      </div>
      <div className="flex justify-end gap-2">
        <LanguageSelect />
        <ThemeSelect />
      </div>
    </main>
  );
}

function TokenForm({ onToken }: { onToken: () => void }) {
  const { t } = useTranslation();
  const [token, setToken] = useState("");
  const [error, setError] = useState<string | null>(null);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const text = token.trim();
    if (!text) return setError(t("signIn.required"));
    const problem = await tryToken(text);
    if (problem) return setError(problem === "refused" ? t("signIn.refused") : t("failure.unreachable"));
    storeToken(text);
    onToken();
  };
  return (
    <form onSubmit={submit} onKeyDown={guardComposition} noValidate>
      <Field label={t("signIn.token")} hint={t("signIn.where")} error={error}>
        {(field) => (
          <input
            {...field}
            type="password"
            className="input"
            value={token}
            onChange={(event) => setToken(event.target.value)}
            autoComplete="off"
          />
        )}
      </Field>
      <button type="submit" className="btn btn-primary mt-3">
        {t("signIn.open")}
      </button>
    </form>
  );
}

/** Asked without `request`, which would report the refusal as the end of a session. */
async function tryToken(token: string): Promise<"refused" | "unreachable" | null> {
  try {
    const answer = await fetch(`${API}/activity?limit=0`, { headers: { Authorization: `Bearer ${token}` } });
    return answer.ok ? null : "refused";
  } catch {
    return "unreachable";
  }
}
