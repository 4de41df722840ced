// What a person should know before saving: secrets in plain text, a growing context, and the rest
// of the daemon's warnings.
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { resourcesQuery } from "../../api/queries";
import type { ServerView } from "../../api/schema";
import { Alert } from "../../ui/alert";
import { Sentence } from "../../ui/sentence";
import { useTokens } from "../tokens";
import { warningWords } from "./check";
import type { ServerForm } from "./use-server-form";

export function FormNotes({ form }: { form: ServerForm }) {
  const { t } = useTranslation();
  const { secrets, warnings } = form.checked;
  // The limits' warning stands beside the limits.
  const others = warnings.filter((warning) => !/not enforced/.test(warning));
  return (
    <div className="space-y-2 empty:hidden">
      {secrets.length > 0 && (
        <Alert tone="warn" role="note" title={t("form.secretWarning")} label={t("form.secretWarning")}>
          {t("form.secretText", { names: secrets.join(", "), count: secrets.length })}
        </Alert>
      )}
      {form.draft.includeResources && (
        <Alert tone="warn" role="note" title={t("form.contextWarning")} label={t("form.contextWarning")}>
          <p>{t("form.contextText")}</p>
          {form.edited?.status === "ready" && <Estimate server={form.edited} />}
        </Alert>
      )}
      {others.length > 0 && (
        <Alert tone="info" role="note" title={t("form.warnings")} label={t("form.warnings")}>
          {others.map((warning) => (
            <Sentence key={warning} text={warningWords(warning, t)} />
          ))}
        </Alert>
      )}
    </div>
  );
}

function Estimate({ server }: { server: ServerView }) {
  const { t } = useTranslation();
  const tokens = useTokens(server);
  const resources = useQuery(resourcesQuery(server.id)).data;
  if (tokens === undefined || !resources) return null;
  return <p>{t("form.contextEstimate", { tokens: tokens.toLocaleString("en-US"), count: resources.length })}</p>;
}
