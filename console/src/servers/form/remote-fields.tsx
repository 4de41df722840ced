// What only a server elsewhere has: where it is, and how requests to it are signed.
import { useTranslation } from "react-i18next";
import type { Draft } from "./draft";
import { SelectField } from "./select-field";
import { TextField } from "./text-field";
import type { ServerForm } from "./use-server-form";

export function RemoteFields({ form }: { form: ServerForm }) {
  const { t } = useTranslation();
  const { draft, change } = form;
  const signed = draft.auth !== "";
  return (
    <>
      <TextField form={form} of="url" field="url" label={t("form.url")} hint={t("form.urlHint")} required mono />
      <SelectField
        form={form}
        field="auth"
        label={t("form.auth")}
        hint={signed ? t("form.authHint") : undefined}
        value={draft.auth}
        onChange={(auth) => change({ auth: auth as Draft["auth"] })}
        options={[
          ["", t("form.auths.none")],
          ["google_id_token", t("form.auths.google_id_token")],
        ]}
      />
      {signed && (
        <TextField
          form={form}
          of="audience"
          field="audience"
          label={t("form.audience")}
          hint={t("form.audienceHint")}
          placeholder={originOf(draft.url)}
          mono
        />
      )}
    </>
  );
}

/** Whom a token is for where nothing else is said. */
function originOf(url: string): string | undefined {
  return URL.canParse(url.trim()) ? new URL(url.trim()).origin : undefined;
}
